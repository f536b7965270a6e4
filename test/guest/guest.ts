import { type ChildProcess, spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';

import { type Machine, RunningCommand, type RunOptions, type RunResult } from './command.js';
import { cpuSeconds } from './cpu-time.js';
import type { Kernel } from './kernel.js';
import { becomesTrue, machineTime, slowdownVariable } from './machine-time.js';
import { repositoryRoot, sourceDir } from './paths.js';
import { type FromAgent, LineParser, type ToAgent } from './protocol.js';
import { runDir } from './sandbox.js';

export interface GuestSize {
  /** Default 1536. */
  readonly memoryMiB?: number;
  /** Default 1: faster than two under emulation. */
  readonly cpus?: number;
}

export interface GuestConfig extends GuestSize {
  readonly kernel: Kernel;
  readonly name: string;
  readonly ipv4: string;
  readonly ipv6: string;
  readonly mac: string;
  /** An existing tap device of this namespace. */
  readonly tap: string;
  readonly mtuBytes: number;
}

const BOOT_TIMEOUT_MS = 90_000;
const POWER_OFF_TIMEOUT_MS = 10_000;
/** What the kernel does after a command has asked for it: addresses, MTUs. */
const SETTLES_MS = 5_000;

/** A Debian kernel with rdma_rxe on eth0 (`rxe0`), on a writable overlay of the host's files. */
export class Guest implements Machine {
  readonly name: string;
  readonly ipv4: string;
  readonly ipv6: string;
  readonly tap: string;
  /** Of the host; the guest sees it, writable, as /mnt/share. */
  readonly shareDir: string;
  readonly consoleFile: string;
  private readonly qemu: ChildProcess;
  private readonly ended: Promise<void>;
  private readonly commands = new Map<number, RunningCommand>();
  private nextId = 1;
  private running = true;

  private constructor(config: GuestConfig, paths: GuestPaths, qemu: ChildProcess) {
    this.name = config.name;
    this.ipv4 = config.ipv4;
    this.ipv6 = config.ipv6;
    this.tap = config.tap;
    this.shareDir = paths.shareDir;
    this.consoleFile = paths.consoleFile;
    this.qemu = qemu;
    this.ended = new Promise((resolve) => {
      const end = (): void => {
        this.running = false;
        for (const command of this.commands.values()) command.ended(null, 'POWER_OFF');
        resolve();
      };
      qemu.on('exit', end);
      qemu.on('error', end);
    });
  }

  /** Resolves when the guest takes commands: rxe0 is up and its GID table has both addresses. */
  static async boot(config: GuestConfig): Promise<Guest> {
    const paths = prepare(config, false);
    const qemu = spawn('qemu-system-x86_64', qemuArguments(config, paths, false), {
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    const guest = new Guest(config, paths, qemu);
    await guest.whenReady();
    return guest;
  }

  /** Of QEMU, since the guest was switched on. */
  get cpuSeconds(): number {
    return cpuSeconds(this.qemu.pid);
  }

  get isRunning(): boolean {
    return this.running;
  }

  spawn(command: string, options: RunOptions = {}): RunningCommand {
    const id = this.nextId++;
    const running = new RunningCommand(`${this.name}: ${command}`, (signal) => {
      this.send({ op: 'kill', id, signal });
    });
    if (!this.running) {
      running.feed('stderr', `${this.name} is powered off`);
      running.ended(null, 'POWER_OFF');
      return running;
    }
    this.commands.set(id, running);
    const env = { ...slowdownVariable(), ...options.env };
    this.send({ op: 'spawn', id, command, cwd: options.cwd ?? '/', env });
    return running;
  }

  run(command: string, options: RunOptions = {}): Promise<RunResult> {
    return this.spawn(command, options).finish(options.timeoutMs);
  }

  /** Kills every command that has not ended. */
  killAll(): void {
    for (const command of this.commands.values()) command.kill('SIGKILL');
  }

  /** Brings eth0 down: rxe says "port error", and IPv6 forgets its address. */
  async linkDown(): Promise<void> {
    await this.run('ip link set eth0 down');
  }

  /** Brings eth0 up, and waits until both addresses are in the GID table again. */
  async linkUp(): Promise<void> {
    const table = 'cat /sys/class/infiniband/rxe0/ports/1/gids/* 2>/dev/null';
    const both = `${table} | grep -c -e ${ipv4Gid(this.ipv4)} -e ${ipv6Gid(this.ipv6)}`;
    const add = `ip -6 addr add ${this.ipv6}/64 dev eth0 nodad 2>/dev/null`;
    await this.run(`ip link set eth0 up; ${add}`);
    await this.holds(`[ "$(${both})" = 2 ]`, 'addresses did not come back');
  }

  /** Looks until a condition of the shell is true. @throws Error when that takes too long */
  holds(condition: string, complaint: string): Promise<void> {
    const isSo = async (): Promise<boolean> => (await this.run(condition)).code === 0;
    return becomesTrue(isSo, SETTLES_MS, () => `${this.name}: ${complaint}`);
  }

  /** Copies a host file into the guest's share; returns its path there. */
  put(hostFile: string, name: string = basename(hostFile)): string {
    copyFileSync(hostFile, join(this.shareDir, name));
    return `/mnt/share/${name}`;
  }

  /** Copies any file of the guest to the host. */
  async get(guestFile: string, hostFile: string): Promise<void> {
    const name = `get-${this.nextId}`;
    const copy = await this.run(`cp "${guestFile}" "/mnt/share/${name}"`);
    if (copy.code !== 0) throw new Error(`${this.name}: ${copy.stderr.trim()}`);
    copyFileSync(join(this.shareDir, name), hostFile);
  }

  /** An orderly end of the kernel; a guest that does not manage is killed. */
  async powerOff(): Promise<void> {
    if (!this.running) return;
    this.spawn('echo o > /proc/sysrq-trigger');
    const cancel = machineTime.after(POWER_OFF_TIMEOUT_MS, () => this.qemu.kill('SIGKILL'));
    await this.ended;
    cancel();
  }

  /** As if the power cord was pulled. */
  async kill(): Promise<void> {
    this.qemu.kill('SIGKILL');
    await this.ended;
  }

  private send(message: ToAgent): void {
    this.qemu.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  private whenReady(): Promise<void> {
    const parser = new LineParser<FromAgent>();
    const decoder = new StringDecoder('utf8');
    let complaints = '';
    this.qemu.stderr?.setEncoding('utf8').on('data', (text: string) => (complaints += text));
    // Writing to a guest that has just died is no error: its commands end with POWER_OFF.
    this.qemu.stdin?.on('error', () => undefined);
    return new Promise((resolve, reject) => {
      const fail = (reason: string): void => {
        cancel();
        this.qemu.kill('SIGKILL');
        const console = existsSync(this.consoleFile) ? readFileSync(this.consoleFile, 'utf8') : '';
        reject(new Error(`${this.name} ${reason}\n${complaints}${console.slice(-2000)}`));
      };
      const cancel = machineTime.after(BOOT_TIMEOUT_MS, () => {
        fail(`not up in ${BOOT_TIMEOUT_MS} ms`);
      });
      void this.ended.then(() => fail('ended while booting'));
      this.qemu.stdout?.on('data', (chunk: Buffer) => {
        parser.push(decoder.write(chunk), (message) => {
          if (message.op === 'ready') {
            cancel();
            resolve();
          } else this.deliver(message);
        });
      });
    });
  }

  private deliver(message: Exclude<FromAgent, { op: 'ready' }>): void {
    const command = this.commands.get(message.id);
    if (command === undefined) return;
    if (message.op !== 'exit') {
      command.feed(message.op, message.text);
      return;
    }
    this.commands.delete(message.id);
    command.ended(message.code, message.signal);
  }
}

/** A guest whose console is this terminal. Resolves when it has powered off. */
export function bootShell(config: GuestConfig): Promise<void> {
  const paths = prepare(config, true);
  const qemu = spawn('qemu-system-x86_64', qemuArguments(config, paths, true), {
    stdio: 'inherit',
  });
  return new Promise((resolve, reject) => {
    qemu.on('exit', () => resolve());
    qemu.on('error', reject);
  });
}

interface GuestPaths {
  readonly shareDir: string;
  readonly consoleFile: string;
}

function prepare(config: GuestConfig, shell: boolean): GuestPaths {
  const shareDir = join(runDir, config.name);
  mkdirSync(shareDir, { recursive: true });
  const variables = {
    GUEST_NAME: config.name,
    GUEST_IPV4: config.ipv4,
    GUEST_IPV6: config.ipv6,
    GUEST_GID4: ipv4Gid(config.ipv4),
    GUEST_GID6: ipv6Gid(config.ipv6),
    GUEST_MTU: String(config.mtuBytes),
    GUEST_MODULES: config.kernel.modulesDir,
    GUEST_NODE: process.execPath,
    GUEST_AGENT: join(import.meta.dirname, 'agent.js'),
    GUEST_SHELL: shell ? '1' : '0',
    GUEST_CWD: repositoryRoot,
    GUEST_ROWS: String(process.stdout.rows ?? 24),
    GUEST_COLUMNS: String(process.stdout.columns ?? 80),
  };
  const lines = Object.entries(variables).map(([key, value]) => `${key}='${value}'`);
  writeFileSync(join(shareDir, 'start'), `${lines.join('\n')}\n. '${sourceDir}/guest-init.sh'\n`);
  return { shareDir, consoleFile: join(runDir, `${config.name}.console`) };
}

function qemuArguments(config: GuestConfig, paths: GuestPaths, shell: boolean): string[] {
  const channel = shell
    ? ['-chardev', 'stdio,id=console,signal=off', '-serial', 'chardev:console']
    : [
        ...['-serial', `file:${paths.consoleFile}`, '-chardev', 'stdio,id=agent'],
        ...['-device', 'virtio-serial-pci', '-device', 'virtserialport,chardev=agent'],
      ];
  const ninep = 'security_model=none,multidevs=remap';
  return [
    // KVM is not asked for: where it is offered without working, a guest would hang.
    ...['-M', 'q35', '-accel', 'tcg,thread=multi', '-cpu', 'max', '-smp', String(config.cpus ?? 1)],
    ...['-m', String(config.memoryMiB ?? 1536), '-nodefaults', '-no-user-config', '-no-reboot'],
    ...['-display', 'none', '-kernel', config.kernel.image, '-initrd', config.kernel.initramfs],
    ...['-append', 'console=ttyS0 quiet panic=-1 mitigations=off'],
    ...['-virtfs', `local,path=/,mount_tag=host,readonly=on,${ninep}`],
    ...['-virtfs', `local,path=${paths.shareDir},mount_tag=share,${ninep}`],
    ...['-netdev', `tap,id=net,ifname=${config.tap},script=no,downscript=no`],
    ...['-device', `virtio-net-pci,netdev=net,mac=${config.mac}`],
    ...channel,
  ];
}

/** As sysfs prints it: an IPv4-mapped IPv6 address, in full. */
function ipv4Gid(address: string): string {
  const hex = address.split('.').map((octet) => Number(octet).toString(16).padStart(2, '0'));
  return `0000:0000:0000:0000:0000:ffff:${hex.slice(0, 2).join('')}:${hex.slice(2).join('')}`;
}

function ipv6Gid(address: string): string {
  const [head = '', tail = ''] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === '' ? [] : tail.split(':');
  const zeros = new Array<string>(8 - left.length - right.length).fill('0');
  return [...left, ...zeros, ...right].map((group) => group.padStart(4, '0')).join(':');
}
