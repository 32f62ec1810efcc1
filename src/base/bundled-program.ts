import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import vm from 'node:vm';
import { crc32 } from 'node:zlib';

const magic = Buffer.from('csi-prov');
/** The magic, then the checksums of the program and of the compiled code. Keeps V8's data aligned. */
const headerBytes = 16;
/** What V8 compiles in front of the program. */
export const beforeProgram = '(function (exports, require, module, __filename, __dirname) {';

/**
 * A program in one CommonJS file without `import()`, and the code that V8 compiled from it in an earlier process, in a file beside it. To
 * compile a large program takes longer than all else that it does at its start.
 *
 * Nothing in that second file can do harm: one that is missing, unreadable, damaged, of another program or of another
 * Node.js is passed over, and the program is compiled. It is read by every user, and never written here.
 */
export class BundledProgram {
  readonly #file: string;
  readonly #source: Buffer;
  readonly #script: vm.Script;
  /** Whether the code did not have to be compiled. */
  readonly isCached: boolean;

  /** @throws when the program cannot be read or is no JavaScript. */
  constructor(file: string) {
    this.#file = file;
    this.#source = readFileSync(file);
    const cachedData = readCode(compiledCodeFile(file), this.#source);
    this.#script = new vm.Script(`${beforeProgram}${this.#source.toString('latin1')}\n})`, {
      filename: file,
      columnOffset: -beforeProgram.length, // positions of errors are those in the file
      ...(cachedData && { cachedData }),
    });
    this.isCached = cachedData !== undefined && this.#script.cachedDataRejected === false;
  }

  /** Makes the program's function without calling it. V8's inspector knows no script before that. */
  define(): (...args: unknown[]) => void {
    return this.#script.runInThisContext() as (...args: unknown[]) => void;
  }

  /** Runs the program. @returns what it exports. */
  run(): unknown {
    const module = { exports: {} };
    this.define().call(
      module.exports,
      module.exports,
      createRequire(this.#file),
      module,
      this.#file,
      path.dirname(this.#file),
    );
    return module.exports;
  }

  /**
   * What belongs into the file beside the program: all functions that have been compiled so far. V8 accepts it in processes whose
   * own flags are those that this process has now.
   */
  compiledCode(): Buffer {
    const code = this.#script.createCachedData();
    return Buffer.concat([header(this.#source, code), code]);
  }
}

/** The name of the file with the compiled code of a program. */
export function compiledCodeFile(program: string): string {
  return `${program}.cache`;
}

/** The compiled code, if it is whole and of this very program: V8 compares no more than the length of the source. */
function readCode(file: string, source: Buffer): Buffer | undefined {
  if (!existsSync(file)) return undefined;
  try {
    const content = readFileSync(file);
    const code = content.subarray(headerBytes);
    return content.subarray(0, headerBytes).equals(header(source, code)) ? code : undefined;
  } catch {
    return undefined; // a folder, or a file of somebody else
  }
}

function header(source: Buffer, code: Buffer): Buffer {
  const checksums = Buffer.alloc(headerBytes - magic.length);
  checksums.writeUInt32LE(crc32(source), 0);
  checksums.writeUInt32LE(crc32(code), 4);
  return Buffer.concat([magic, checksums]);
}
