import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** A mounted file system of which the server is gone: each call in it fails with `ENOTCONN`. */
export class DeadMount implements Disposable {
  readonly path: string;

  private constructor(folder: string) {
    this.path = folder;
  }

  /** Undefined where this machine permits no mount. */
  static mount(): DeadMount | undefined {
    const folder = mkdtempSync(path.join(tmpdir(), 'dead-mount-'));
    try {
      // the server is the one who has the file open, and ends with this shell
      const options = 'fd=3,rootmode=40000,user_id=0,group_id=0';
      execFileSync('sh', ['-c', `exec 3<>/dev/fuse && mount -i -t fuse -o ${options} none "$0"`, folder], {
        stdio: 'ignore',
      });
      return new DeadMount(folder);
    } catch {
      rmdirSync(folder);
      return undefined;
    }
  }

  [Symbol.dispose](): void {
    execFileSync('umount', ['--lazy', this.path]);
    rmdirSync(this.path);
  }
}
