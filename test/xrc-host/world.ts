/** Programs that share XRC domains on an address of their own, for tests of them. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Program } from '../slots/programs.js';
import { loopback } from '../support/loopback.js';

export const PROGRAM = join(import.meta.dirname, 'program.js');

export interface Receiver {
  readonly program: Program;
  readonly srqn: number;
}

/** Two receivers, of which the first has made a target, and a sender that is attached to it. */
export interface Reach {
  readonly first: Program;
  readonly second: Program;
  readonly sender: Program;
  readonly srqns: readonly number[];
  readonly target: number;
  readonly address: string;
  readonly key: string;
}

/** Addresses and keys that no other test has. */
export class World {
  private readonly directory = mkdtempSync(join(tmpdir(), 'xrc-'));
  private hosts = 1;

  /** @param block of the addresses: loopback(block, 1) and on */
  constructor(private readonly block: number) {}

  newAddress(): string {
    return loopback(this.block, this.hosts++);
  }

  newKey(): string {
    const key = join(this.directory, `domain-${this.hosts++}`);
    writeFileSync(key, '');
    return key;
  }

  get missingKey(): string {
    return join(this.directory, 'missing');
  }

  async reach(...options: readonly string[]): Promise<Reach> {
    const [address, outside, key] = [this.newAddress(), this.newAddress(), this.newKey()];
    const first = await receiver(address, key);
    const second = await receiver(address, key);
    const { sender, target } = await attached(first.program, address, outside, ...options);
    const srqns = [first.srqn, second.srqn];
    return { first: first.program, second: second.program, sender, srqns, target, address, key };
  }

  /** As `reach`, by a connection request: each receiver could accept it, and the first one does. */
  async connect(port: number, ...options: readonly string[]): Promise<Reach> {
    const [address, outside, key] = [this.newAddress(), this.newAddress(), this.newKey()];
    const first = await receiver(address, key);
    const second = await receiver(address, key);
    assert.equal(await first.program.ask(['listen', port, ...options].join(' ')), 'listening');
    const sender = await device(outside, 'alone');
    await sender.ask('initiator');
    assert.equal(await sender.ask(`connect ${address} ${port}`), 'ESTABLISHED');
    const target = Number(await first.program.ask('accepted 1'));
    const srqns = [first.srqn, second.srqn];
    return { first: first.program, second: second.program, sender, srqns, target, address, key };
  }

  end(): void {
    rmSync(this.directory, { recursive: true });
  }
}

/** A sender at an address of its own, attached to a new target of `creator`. */
export async function attached(
  creator: Program,
  address: string,
  outside: string,
  ...options: readonly string[]
): Promise<{ readonly sender: Program; readonly target: number }> {
  const sender = await device(outside, 'alone');
  const qpn = await sender.ask('initiator');
  const target = Number(await creator.ask(['target', outside, qpn, ...options].join(' ')));
  assert.ok(target > 0);
  assert.equal(await sender.ask(`attach ${address} ${target}`), 'connection');
  return { sender, target };
}

/** A program with the domain open and a receive queue in it. */
export async function receiver(address: string, key: string): Promise<Receiver> {
  const program = await device(address);
  assert.equal(await program.ask(`domain ${key}`), 'domain');
  const srqn = Number(await program.ask('queue'));
  assert.ok(srqn > 0, `${srqn}`);
  return { program, srqn };
}

export async function device(address: string, how = ''): Promise<Program> {
  const program = new Program({ command: [process.execPath, PROGRAM] });
  assert.equal(await program.ask(`open ${address} ${how}`), 'open');
  return program;
}

/** Processes that host domains of an address. */
export function hostsOf(address: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      const command = commandOf(pid);
      return command.includes('xrc-host-program.js') && command.includes(`"${address}"`);
    });
}

/** By which they listen; the one host there is. */
export function hostNameOf(address: string): string {
  const [, , task = ''] = commandOf(hostsOf(address)[0] ?? 0).split('\0');
  return (JSON.parse(task) as { name: string }).name;
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
