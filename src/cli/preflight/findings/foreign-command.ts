/** The container overrides the entry point of the image with a program that this image does not have. */
import { programInImage } from '../../program-in-image.ts';
import { defineFinding } from './preflight-finding.ts';

export const foreignCommand = defineFinding({
  name: 'command',
  check({ container: { command, args } }) {
    const [entry = ''] = command ?? [];
    if (command === undefined || programInImage.every((word) => command.includes(word))) return [];
    const isShell = /(?:^|\/)(?:ba|da|z)?sh$/.test(entry);
    const flags = command.slice(1).filter((word) => word.startsWith('-'));
    const more =
      flags.length === 0 ? '' : `, and move its arguments to args, before the ${args.length} that are there already`;
    return [
      {
        level: 'must',
        message: `The container runs ${JSON.stringify(entry)}, which this image does not have${isShell ? ': it has no shell' : ''}. It would not start.`,
        cure: isShell
          ? 'Remove command, and put the flags of the sidecar into args: the entry point of the image is the program.'
          : `Remove command${more}: the entry point of the image is the program.`,
      },
    ];
  },
});
