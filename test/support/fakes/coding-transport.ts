import { InvalidError } from '../../../src/kube/client/api-error.ts';
import type { RequestOptions, StreamedResponse } from '../../../src/kube/client/request.ts';
import { Transport, type TransportOptions } from '../../../src/kube/client/transport.ts';

/** A transport to a server that lacks something. */
export class CodingTransport extends Transport {
  readonly #without: { protobuf?: boolean; streamedLists?: boolean };
  /** What was answered, by resource: `protobuf` or `json`. */
  readonly codings = new Map<string, string>();

  constructor(options: TransportOptions, without: { protobuf?: boolean; streamedLists?: boolean } = {}) {
    super(options);
    this.#without = without;
  }

  override async stream(options: RequestOptions & { watch: boolean }): Promise<StreamedResponse> {
    const { accept, ...rest } = options;
    if (this.#without.streamedLists === true && options.query?.['sendInitialEvents'] === true) {
      throw new InvalidError({ code: 422, reason: 'Invalid', message: 'no streaming lists' }, options.info);
    }
    const answer = await super.stream(this.#without.protobuf === true ? rest : { ...rest, accept });
    this.codings.set(options.info.resource.plural, answer.isProtobuf ? 'protobuf' : 'json');
    return answer;
  }
}
