/** Node's HTTP/2 client as gRPC needs it. grpc-js calls `http2.connect` by itself and has no options for these. */
import http2 from 'node:http2';
import type { ChannelOptions } from '@grpc/grpc-js';

/**
 * Maximum length of a driver's status text, in bytes and percent-encoded: the max header value that Node's
 * HTTP/2 accepts. A longer one breaks the connection, with all calls on it.
 */
export const maxStatusTextBytes = 64 * 1024;
/** Room for the other headers of a status, as HTTP/2 counts them (RFC 9113, "SETTINGS_MAX_HEADER_LIST_SIZE"). */
const otherHeadersBytes = 256;
/** Marks the connections of our channels: as good as no limit, and one less than the default of grpc-js. */
const maxSessionMemory = Number.MAX_SAFE_INTEGER - 1;

type Connect = (
  authority: string | URL,
  options?: http2.ClientSessionOptions,
  ...rest: never[]
) => http2.ClientHttp2Session;

/** The function that replaces Node's, so that a repeat does not wrap it again. */
const adjusted = new WeakSet<object>();

/**
 * Options of a channel whose HTTP/2 connections
 *
 * - take header values that begin or end with a blank: `Exception calling application: ` is the whole text of many a
 *   failure, and Node would drop it;
 * - announce how long headers may be, so that a server that respects it resets the call and not the connection.
 *
 * Other connections of the process, such as those to the API server, stay as they are: grpc-js hands one of the options on to
 * `http2.connect`, which knows the channel by it.
 */
export function adjustedHttp2(): ChannelOptions {
  const connect = http2.connect as Connect;
  if (!adjusted.has(connect)) {
    const adjustedConnect: Connect = (authority, options, ...rest) =>
      connect(authority, options?.maxSessionMemory === maxSessionMemory ? adjustedOptions(options) : options, ...rest);
    adjusted.add(adjustedConnect);
    Object.assign(http2, { connect: adjustedConnect });
  }
  return { 'grpc-node.max_session_memory': maxSessionMemory };
}

function adjustedOptions(options: http2.ClientSessionOptions): http2.ClientSessionOptions {
  return {
    ...options,
    strictFieldWhitespaceValidation: false,
    settings: { ...options.settings, maxHeaderListSize: maxStatusTextBytes + otherHeadersBytes },
  };
}
