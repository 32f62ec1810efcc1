import { provisionerName } from './driver-name-rules.ts';
import { invalid, required } from './field-error.ts';
import { jsonEqual, objectAt, stringAt } from './json.ts';
import type { KindRules } from './kind-rules.ts';

/** Checks of VolumeAttachment. */
export const attachmentRules: KindRules = {
  prepareCreate(attachment) {
    attachment['status'] = { attached: false };
  },
  validate(attachment) {
    const errors = provisionerName(objectAt(attachment, 'spec')['attacher'], 'spec.attacher');
    if (stringAt(attachment, 'spec', 'nodeName') === '') errors.push(required('spec.nodeName'));
    if (Object.keys(objectAt(attachment, 'spec', 'source')).length === 0) errors.push(required('spec.source'));
    return errors;
  },
  validateUpdate: (attachment, old) =>
    jsonEqual(attachment['spec'], old['spec']) ? [] : [invalid('spec', attachment['spec'], 'field is immutable')],
};
