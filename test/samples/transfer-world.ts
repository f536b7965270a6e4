/** A directory for one test of the transfer sample, and addresses that nothing else uses. */
import { randomFillSync } from 'node:crypto';
import { watch } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loopback } from '../support/loopback.js';
import { Program } from './program.js';

export class TransferWorld {
  private readonly programs: Program[] = [];

  private constructor(
    readonly directory: string,
    /** Where the receiver stores. */
    readonly out: string,
    readonly to: string,
    readonly from: string,
  ) {}

  /** @param net third number of the addresses: one per test file, which may run side by side */
  static async make(net: number): Promise<TransferWorld> {
    const directory = await mkdtemp(join(tmpdir(), 'dapl-test-transfer-'));
    const out = join(directory, 'out');
    await mkdir(out);
    return new TransferWorld(directory, out, loopback(net, 1), loopback(net, 2));
  }

  /** Ends what a test has left running. */
  async stop(): Promise<void> {
    const left = this.programs.splice(0);
    for (const program of left) program.kill('SIGKILL');
    await Promise.all(left.map((program) => program.ended));
  }

  async close(): Promise<void> {
    await this.stop();
    await rm(this.directory, { recursive: true, force: true });
  }

  /** A file of random bytes. */
  async file(name: string, lengthBytes: number): Promise<string> {
    const path = join(this.directory, name);
    await writeFile(path, randomFillSync(new Uint8Array(lengthBytes)));
    return path;
  }

  start(...args: readonly string[]): Program {
    const program = new Program('transfer', ...args);
    this.programs.push(program);
    return program;
  }

  /** Both sides by one command. */
  both(path: string, ...more: readonly string[]): Program {
    return this.start(path, '--from', this.from, '--to', this.to, '--out', this.out, ...more);
  }

  send(path: string, ...more: readonly string[]): Program {
    return this.start('send', path, '--from', this.from, '--to', this.to, ...more);
  }

  async receive(...more: readonly string[]): Promise<Program> {
    const program = this.start('receive', '--listen', this.to, '--out', this.out, ...more);
    await program.printed(/Listening/);
    return program;
  }

  /** Resolves when something is written to a file of the receiver. */
  written(name: string): Promise<void> {
    return new Promise((resolve) => {
      const watcher = watch(this.out, (event, changed) => {
        if (event !== 'change' || changed !== name) return;
        watcher.close();
        resolve();
      });
    });
  }
}
