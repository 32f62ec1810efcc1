/**
 * Notices that an HTTP/2 connection is dead, such as when the server behind a load balancer died silently: the operating system
 * notices nothing then, since the load balancer goes on acknowledging what is sent.
 */
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../base/clock.ts';
import { TransportError } from './api-error.ts';

/** How often undici sends a PING frame, in milliseconds: a connection that responds to it is alive. */
export const pingMs = 10_000;
/** How often a connection is checked, and after how many checks in a row without a byte it is suspect, and dead. */
const checkMs = 5000;
const suspectChecks = 3;
const maxSilentChecks = 5;

/**
 * Destroys the connection after 25 to 30 s without a byte. Checks are counted, not time: a process that was paused reads what came
 * meanwhile before the next check.
 *
 * @param options.onSuspect - called after 15 to 20 s without a byte.
 * @param options.onDead - called before the connection is destroyed.
 */
export function endWhenSilent(
  socket: Socket,
  { clock, onSuspect, onDead }: { clock: Clock; onSuspect: () => void; onDead: (reason: TransportError) => void },
): void {
  let bytes = socket.bytesRead;
  let silentChecks = 0;
  const check = (): void => {
    if (socket.destroyed) return;
    silentChecks = socket.bytesRead === bytes ? silentChecks + 1 : 0;
    bytes = socket.bytesRead;
    if (silentChecks === suspectChecks) onSuspect();
    if (silentChecks < maxSilentChecks) {
      clock.after(checkMs, check);
      return;
    }
    const message = `no byte came for ${(checkMs * maxSilentChecks) / 1000} s, not even the response to a PING`;
    const reason = new TransportError(message, { code: 'ECONNRESET' });
    onDead(reason);
    socket.destroy(reason);
  };
  clock.after(checkMs, check);
}

/** Whether the server chose HTTP/2 for the connection. */
export function isHttp2(socket: Socket): boolean {
  return (socket as Partial<TLSSocket>).alpnProtocol === 'h2';
}
