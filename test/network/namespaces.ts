/**
 * Two hosts and a router between them, each a network namespace of this test's own: a, the router
 * r, and b, joined by veth. Needs root and iproute2; ends with `end`.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { patience } from '../support/patience.js';

/** Of the addresses: none of them is ever routed outside. */
const NETS = { a: { ipv4: '10.213.1', ipv6: 'fd13:1:' }, b: { ipv4: '10.213.2', ipv6: 'fd13:2:' } };
export type Family = 'ipv4' | 'ipv6';
type Side = 'a' | 'b';
const SAY_MS = 30_000;

export class Namespaces {
  private readonly prefix = `dapl${process.pid}`;
  private readonly programs = new Set<NetworkProgram>();

  /** @returns undefined when this user may, and the machine can, make them; else why not */
  static problem(): string | undefined {
    if (process.getuid?.() !== 0) return 'network namespaces need root';
    const name = `dapl${process.pid}try`;
    try {
      execFileSync('ip', ['netns', 'add', name], { stdio: 'pipe' });
      execFileSync('ip', ['netns', 'delete', name], { stdio: 'pipe' });
      return undefined;
    } catch (error) {
      return `no network namespace could be made: ${String(error)}`;
    }
  }

  constructor(linkMtuBytes = 1500) {
    for (const name of ['a', 'r', 'b']) {
      execFileSync('ip', ['netns', 'add', `${this.prefix}${name}`]);
      this.ip(name, 'link set lo up');
    }
    for (const side of ['a', 'b'] as const) this.join(side, linkMtuBytes);
    this.run('r', 'sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1');
  }

  private join(side: Side, mtuBytes: number): void {
    const [namespace, router] = [this.prefix + side, `${this.prefix}r`];
    const link = `link add eth0 mtu ${mtuBytes} netns ${namespace} type veth`;
    execFileSync('ip', `${link} peer name to-${side} mtu ${mtuBytes} netns ${router}`.split(' '));
    for (const family of ['ipv4', 'ipv6'] as const) {
      this.addAddress('r', `to-${side}`, this.gateway(side, family));
    }
    this.ip('r', `link set to-${side} up`);
    this.linkUp(side);
  }

  private addAddress(namespace: string, device: string, address: string): void {
    const bits = address.includes(':') ? '/64 nodad' : '/24';
    this.ip(namespace, `addr replace ${address}${bits} dev ${device}`);
  }

  address(side: Side, family: Family): string {
    return `${NETS[side][family]}${family === 'ipv6' ? ':2' : '.2'}`;
  }

  /** The router's address on the link of a side. */
  gateway(side: Side, family: Family): string {
    return `${NETS[side][family]}${family === 'ipv6' ? ':1' : '.1'}`;
  }

  linkDown(side: Side): void {
    this.ip(side, 'link set eth0 down');
  }

  /** The routes go with the link, and IPv6 addresses. */
  linkUp(side: Side): void {
    this.ip(side, 'link set eth0 up');
    for (const family of ['ipv4', 'ipv6'] as const) {
      this.addAddress(side, 'eth0', this.address(side, family));
      this.ip(side, `route replace default via ${this.gateway(side, family)}`);
    }
  }

  /** @param words as `ip` has them */
  ip(namespace: string, words: string): void {
    const family = words.includes('::') ? ['-6'] : [];
    const all = ['-n', this.prefix + namespace, ...family, ...words.split(' ')];
    execFileSync('ip', all, { stdio: 'pipe' });
  }

  private run(namespace: string, ...command: readonly string[]): void {
    execFileSync('ip', ['netns', 'exec', this.prefix + namespace, ...command]);
  }

  /** What runs a command in a namespace. */
  command(namespace: string, ...words: readonly string[]): string[] {
    return ['ip', 'netns', 'exec', this.prefix + namespace, ...words];
  }

  /** A program of test/network in a namespace. */
  start(namespace: string, program: string, ...args: readonly string[]): NetworkProgram {
    const file = fileURLToPath(new URL(`${program}.js`, import.meta.url));
    const [ip = '', ...words] = this.command(namespace, process.execPath, file, ...args);
    const started = new NetworkProgram(spawn(ip, words, { stdio: 'pipe' }));
    this.programs.add(started);
    return started;
  }

  /** Ends what has been started, and takes the namespaces away. */
  async end(): Promise<void> {
    for (const program of this.programs) await program.kill();
    for (const name of ['a', 'r', 'b']) {
      execFileSync('ip', ['netns', 'delete', this.prefix + name], { stdio: 'pipe' });
    }
  }
}

export class NetworkProgram {
  output = '';
  private readonly end: Promise<unknown>;
  private over = false;

  constructor(private readonly process: ChildProcess) {
    for (const stream of [process.stdout, process.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    }
    this.end = once(process, 'close').then(() => (this.over = true));
  }

  /** Waits for output; what comes before the end of it is not looked at again. */
  async said(pattern: RegExp): Promise<RegExpExecArray> {
    for (const until = Date.now() + patience(SAY_MS); ;) {
      const match = pattern.exec(this.output);
      if (match) {
        this.output = this.output.slice(match.index + match[0].length);
        return match;
      }
      if (this.over || Date.now() > until) {
        throw new Error(`${String(pattern)} was not said: ${this.output}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  tell(line: string): void {
    this.process.stdin?.write(`${line}\n`);
  }

  async ended(): Promise<number | null> {
    await this.end;
    return this.process.exitCode;
  }

  async kill(): Promise<void> {
    if (!this.over) this.process.kill('SIGKILL');
    await this.end;
  }
}
