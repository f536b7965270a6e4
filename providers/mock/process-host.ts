/**
 * A simulated process that shares an address: its part of the system, and its end. It may end at
 * any moment, as by SIGKILL; from then on its code has no effect.
 */
import {
  type ConnectionRecord,
  type HandedPacket,
  type Logger,
  type Random,
  SpiError,
} from '../../core/spi/index.js';
import type { GroupDevice } from '../shared-address/group-device.js';
import type { GroupHost, Link } from '../shared-address/group-host.js';
import type { GroupSystem, OpenFile } from './group-system.js';
import { PairedLink } from './paired-link.js';
import type { SteeredSocket } from './steered-address.js';

export class ProcessHost implements GroupHost {
  readonly addresses: number;
  readonly links = new Set<PairedLink>();
  /** Absent while the device opens. */
  device: GroupDevice | undefined;
  isKilled = false;
  onKilled: (() => void) | undefined;
  private readonly files = new Map<number, OpenFile>();
  private nextDescriptor = 3;
  /** Memory that others have, too, as it was when this process was killed inside of a call. */
  private left: { readonly memory: ArrayBuffer; readonly bytes: ArrayBuffer } | undefined;
  private depth = 0;

  constructor(
    readonly system: GroupSystem,
    readonly process: string,
    private readonly random: Random,
    private readonly logger: Logger,
  ) {
    this.addresses = system.addresses.length;
  }

  /** Descriptors that are open. */
  get descriptors(): number {
    return this.files.size;
  }

  /** The process has ended: all that it has is closed, in the order of its descriptors. */
  kill(): void {
    if (this.isKilled) return;
    this.isKilled = true;
    for (const { what } of this.files.values()) {
      if (this.depth === 0 || !(what instanceof ArrayBuffer)) continue;
      this.left = { memory: what, bytes: what.slice(0) };
    }
    const { system } = this;
    if (system.listener?.host === this) system.listener = undefined;
    for (const [slot, host] of system.lives) if (host === this) system.lives.delete(slot);
    for (const link of [...this.links]) link.close();
    this.closeAll([...this.files.keys()]);
    this.onKilled?.();
  }

  /** Runs code of the process; writes after its end have no effect. */
  enter(body: () => void): void {
    if (this.isKilled) return;
    this.depth++;
    try {
      body();
    } finally {
      this.depth--;
      if (this.depth === 0 && this.left !== undefined) {
        new Uint8Array(this.left.memory).set(new Uint8Array(this.left.bytes));
        this.left = undefined;
      }
    }
  }

  soon(body: () => void): void {
    this.system.fabric.clock.soon(() => this.enter(body));
  }

  install(file: OpenFile): number {
    file.descriptors++;
    const descriptor = this.nextDescriptor++;
    this.files.set(descriptor, file);
    return descriptor;
  }

  fileOf(descriptor: number): OpenFile {
    const file = this.files.get(descriptor);
    if (file === undefined) throw new SpiError('EINVAL', `descriptor ${descriptor} is not open`);
    return file;
  }

  socketsOf(descriptors: readonly number[]): SteeredSocket[] {
    return descriptors.map((descriptor) => {
      const { what } = this.fileOf(descriptor);
      if (what instanceof ArrayBuffer) {
        throw new SpiError('EINVAL', `descriptor ${descriptor} is no socket`);
      }
      return what;
    });
  }

  connect(): Link | undefined {
    const { listener } = this.system;
    if (listener === undefined || this.isKilled) return undefined;
    const [ours, theirs] = PairedLink.pair(this, listener.host);
    listener.host.soon(() => {
      if (this.system.listener === listener) listener.onLink(theirs);
      else theirs.close();
    });
    return ours;
  }

  listen(onLink: (link: Link) => void): { close(): void } | undefined {
    const { system } = this;
    if (system.listener !== undefined || this.isKilled) return undefined;
    const listener = { host: this, onLink };
    system.listener = listener;
    return {
      close: () => {
        if (system.listener === listener) system.listener = undefined;
      },
    };
  }

  isGroupThere(): boolean {
    this.system.checkAddresses();
    return this.system.hasSockets;
  }

  createTable(lengthBytes: number): { memory: ArrayBuffer; descriptor: number } {
    const memory = new ArrayBuffer(lengthBytes);
    return { memory, descriptor: this.install(this.system.open(memory)) };
  }

  mapTable(descriptor: number, lengthBytes: number): ArrayBuffer {
    const { what } = this.fileOf(descriptor);
    if (what instanceof ArrayBuffer && what.byteLength === lengthBytes) return what;
    throw new SpiError('EINVAL', `descriptor ${descriptor} is no memory of ${lengthBytes} bytes`);
  }

  bindPlace(): number[] {
    if (this.isKilled) throw new SpiError('EIO', 'the process has ended');
    return this.system.addresses.map((address) => this.install(this.system.bind(address)));
  }

  steer(home: number, descriptors: readonly number[]): void {
    if (this.isKilled) return;
    for (const socket of this.socketsOf(descriptors)) socket.address.steer(home);
  }

  silence(descriptors: readonly number[]): void {
    if (this.isKilled) return;
    for (const socket of this.socketsOf(descriptors)) socket.silence();
  }

  wake(descriptors: readonly number[]): void {
    if (this.isKilled) return;
    for (const socket of this.socketsOf(descriptors)) socket.wake();
  }

  closeDescriptors(descriptors: readonly number[]): void {
    if (!this.isKilled) this.closeAll(descriptors);
  }

  liveAs(slot: number): { close(): void } {
    const { lives } = this.system;
    if (lives.has(slot)) throw new SpiError('EADDRINUSE', `slot ${slot} is another process's`);
    if (!this.isKilled) lives.set(slot, this);
    return {
      close: () => {
        if (lives.get(slot) === this) lives.delete(slot);
      },
    };
  }

  isAlive(slot: number): boolean {
    return this.system.lives.has(slot);
  }

  disconnect(record: ConnectionRecord): void {
    if (!this.isKilled) this.device?.disconnect(record);
  }

  deliver(packet: HandedPacket): void {
    if (!this.isKilled) this.device?.deliver(packet);
  }

  onLost(reason: string): void {
    if (!this.isKilled) this.device?.onLost(reason);
  }

  startTimer(delayUs: number, onTimeout: () => void): () => void {
    const { clock } = this.system.fabric;
    const event = clock.at(clock.now() + delayUs, () => this.enter(onTimeout));
    return () => clock.cancel(event);
  }

  nowUs(): number {
    return this.system.fabric.clock.now();
  }

  randomGuid(): bigint {
    return (BigInt(this.random.u32()) << 32n) | BigInt(this.random.u32()) | 1n;
  }

  note(message: string, details: Readonly<Record<string, unknown>>): void {
    if (!this.isKilled) this.logger.warn(message, { ...details });
  }

  private closeAll(descriptors: readonly number[]): void {
    for (const descriptor of descriptors) {
      const file = this.files.get(descriptor);
      if (!this.files.delete(descriptor)) continue;
      file?.drop();
    }
  }
}
