import { type Clock, systemClock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { ApiError, isGarbled } from '../client/api-error.ts';
import type { RequestOptions, StreamedResponse, StreamOptions } from '../client/request.ts';
import type { Transport } from '../client/transport.ts';
import type { KubeObject } from '../kube-object.ts';
import { acceptProtobuf, type ObjectDecoder } from '../protobuf/envelope.ts';
import { MalformedMessageError } from '../protobuf/message-decoder.ts';

interface CodingChoiceOptions {
  transport: Transport;
  /** Reads the objects from protobuf. Absent: only JSON is requested. */
  protobuf?: ObjectDecoder | undefined;
  /** Default: `systemClock`. */
  clock?: Pick<Clock, 'monotonicMs'>;
  logger: Logger;
}

/** A list or watch that is open, and how to read it. */
export interface CodedResponse {
  body: StreamedResponse['body'];
  /** Absent: the body is JSON. */
  decode: ObjectDecoder | undefined;
}

/** Not Acceptable, Unsupported Media Type: what a server, or a proxy before it, says to a coding that it does not have. */
const unsupportedCodes: ReadonlySet<number> = new Set([406, 415]);

/**
 * Chooses the coding in which the objects of one resource are requested: protobuf, and JSON for an hour up to a day after protobuf
 * has failed, also where only a response was truncated.
 */
export class CodingChoice {
  readonly #options: CodingChoiceOptions;
  readonly #protobuf: ObjectDecoder | undefined;
  readonly #suspension: Suspension;

  constructor(options: CodingChoiceOptions) {
    this.#options = options;
    this.#suspension = new Suspension(options.clock ?? systemClock);
    this.#protobuf = options.protobuf && orMalformed(options.protobuf);
  }

  /** As `Transport.stream`, in the present coding; a server without protobuf is asked again at once for JSON. */
  async stream(request: StreamOptions): Promise<CodedResponse> {
    const { transport } = this.#options;
    const decode = this.#decoder;
    if (decode !== undefined) {
      try {
        const { body, isProtobuf } = await transport.stream({ ...request, accept: acceptProtobuf });
        return { body, decode: isProtobuf ? decode : undefined };
      } catch (error) {
        if (!(error instanceof ApiError) || !unsupportedCodes.has(error.code)) throw error;
        this.#giveUp(error, request);
      }
    }
    const { body } = await transport.stream(request);
    return { body, decode: undefined };
  }

  /** Stops requesting protobuf for a while if the response to such a request could not be read. */
  failed(error: unknown, request: Pick<RequestOptions, 'info'>): void {
    if (isGarbled(error) && this.#decoder !== undefined) this.#giveUp(error, request);
  }

  /** Undefined: JSON is to be requested. */
  get #decoder(): ObjectDecoder | undefined {
    return this.#suspension.isActive ? undefined : this.#protobuf;
  }

  #giveUp(error: unknown, { info }: Pick<RequestOptions, 'info'>): void {
    const forHours = this.#suspension.begin();
    this.#options.logger.warn(
      { resource: info.resource.plural, retryAfterHours: forHours, err: error },
      'A resource could not be read as protobuf, requesting JSON until protobuf is tried again',
    );
  }
}

/** Whatever a decoder throws at, and an object without metadata, is a reason to read JSON. */
function orMalformed(decode: ObjectDecoder): ObjectDecoder {
  return (bytes, start, end) => {
    let object: Partial<KubeObject>;
    try {
      object = decode(bytes, start, end);
    } catch (error) {
      if (error instanceof MalformedMessageError) throw error;
      throw new MalformedMessageError('an object could not be decoded', { cause: error });
    }
    if (object.metadata === undefined) throw new MalformedMessageError('an object has no metadata');
    return object as KubeObject;
  };
}

/** How long something is not tried after its first failure, in milliseconds; each further failure doubles it, up to the maximum. */
const firstMs = 3_600_000;
const maxMs = 24 * firstMs;

/**
 * Something that an API server turned out not to offer, and that is not requested again for some hours. Not for good: the cause
 * may be one server of several during an upgrade, or a proxy, and this process runs for months.
 */
export class Suspension {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #nextMs = firstMs;
  #untilMs = -Infinity;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  get isActive(): boolean {
    return this.#clock.monotonicMs() < this.#untilMs;
  }

  /** Call after a failure; one more than a day after the last suspension counts as the first. @returns the hours of the suspension. */
  begin(): number {
    const nowMs = this.#clock.monotonicMs();
    const forMs = nowMs - this.#untilMs > maxMs ? firstMs : this.#nextMs;
    this.#untilMs = nowMs + forMs;
    this.#nextMs = Math.min(2 * forMs, maxMs);
    return forMs / firstMs;
  }
}
