/** Proves to a process that comes after this one, on the same machine, that this one has ended. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';

/**
 * An abstract Unix socket (Linux, unix(7)) that the holder of a Lease keeps bound: the kernel closes it with the process, however that
 * ends, and only one process can have it. It exists in the network namespace, which the containers of a Pod share, restarted ones
 * included, and also all Pods with `hostNetwork` of a node. Nothing is sent over it.
 */
export class HolderSocket implements Disposable {
  readonly #identity: string;
  readonly #place: string;
  #name = '';
  #binding: Promise<net.Server | undefined> = Promise.resolve(undefined);
  #isDisposed = false;

  /** @param place - machine and network namespace. Default: those of this process. Empty: nothing is proven. */
  constructor({ identity, place = ownPlace() }: { identity: string; place?: string | undefined }) {
    this.#identity = identity;
    this.#place = place;
  }

  /**
   * Binds the socket for a Lease, unless that was done.
   *
   * @param leaseUid - of the Lease; empty: not known yet.
   * @returns where other processes can see that this one lives; empty while they cannot, such as when another has the socket.
   */
  async hold(leaseUid: string): Promise<string> {
    if (this.#place === '' || leaseUid === '' || this.#isDisposed) return '';
    const hash = createHash('sha256').update(JSON.stringify([this.#place, leaseUid, this.#identity]));
    const name = `\0csi-provisioner-${hash.digest('hex')}`;
    if (name !== this.#name) {
      this.#close();
      this.#name = name;
      this.#binding = bound(name);
    }
    if ((await this.#binding) !== undefined) return this.#place;
    if (this.#name === name) this.#name = ''; // tried again at the next call
    return '';
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#close();
  }

  #close(): void {
    void this.#binding.then((server) => server?.close());
  }
}

/** Binds a socket; undefined where another process has it, and where there are no abstract sockets. */
async function bound(name: string): Promise<net.Server | undefined> {
  const server = net.createServer((connection) => connection.destroy()).unref();
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined));
    server.listen(name, () => resolve(server));
  });
}

/** The network namespace, with the boot id of the machine: the inode of a namespace is unique only until a reboot. */
function ownPlace(): string {
  try {
    const bootId = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return bootId === '' ? '' : `${bootId} ${fs.readlinkSync('/proc/self/ns/net')}`;
  } catch {
    return ''; // not Linux, or a sandbox that hides it
  }
}
