/**
 * Stand-in for Linux, for processes that share the addresses of one device: sockets, open files
 * with descriptors, a name that only one process can have, links between them.
 */
import { SpiError } from '../../core/spi/index.js';
import type { Fabric } from './fabric.js';
import type { PairedLink } from './paired-link.js';
import type { ProcessHost } from './process-host.js';
import { SteeredAddress, type SteeredSocket } from './steered-address.js';

/** An open file is closed with its last descriptor, in whatever process that is. */
export class OpenFile {
  descriptors = 0;

  /** @param what a socket, or memory */
  constructor(
    readonly what: SteeredSocket | ArrayBuffer,
    private readonly onClosed: (file: OpenFile) => void,
  ) {}

  drop(): void {
    this.descriptors--;
    if (this.descriptors === 0) this.onClosed(this);
  }
}

/** Called in a test with each message between processes, before it is sent. */
export type MessageTap = (from: ProcessHost, to: ProcessHost, bytes: Uint8Array) => void;

export class GroupSystem {
  /** The process that has the name of the group, and what comes of a connection to it. */
  listener: { readonly host: ProcessHost; readonly onLink: (link: PairedLink) => void } | undefined;
  /** Processes by name; a later one of the same name replaces an earlier. */
  readonly processes = new Map<string, ProcessHost>();
  /** Processes by slot: each has the name that shows that its slot is in use. */
  readonly lives = new Map<number, ProcessHost>();
  tap: MessageTap | undefined;
  private readonly sockets = new Map<string, SteeredAddress>();
  private openFiles = 0;

  constructor(
    readonly fabric: Fabric,
    readonly addresses: readonly string[],
  ) {}

  /** Resources left by a group: all zero once its processes are gone. */
  get usage(): { readonly files: number; readonly sockets: number; readonly names: number } {
    let sockets = 0;
    for (const address of this.sockets.values()) sockets += address.size;
    const names = this.lives.size + (this.listener === undefined ? 0 : 1);
    return { files: this.openFiles, sockets, names };
  }

  get hasSockets(): boolean {
    return this.sockets.size > 0;
  }

  /** @throws SpiError('EADDRINUSE') */
  bind(address: string): OpenFile {
    let shared = this.sockets.get(address);
    if (shared === undefined) {
      shared = new SteeredAddress(this.fabric.pool);
      this.fabric.bind(address, shared);
      this.sockets.set(address, shared);
    }
    return this.open(shared.bind());
  }

  open(what: SteeredSocket | ArrayBuffer): OpenFile {
    this.openFiles++;
    return new OpenFile(what, (file) => this.onClosed(file));
  }

  /** @throws SpiError('EADDRINUSE') an address is another device's that is not shared */
  checkAddresses(): void {
    for (const address of this.addresses) {
      if (this.sockets.has(address) || !this.fabric.isBound(address)) continue;
      throw new SpiError('EADDRINUSE', `${address} is in use on this fabric, and is not shared`, {
        hint: 'open it with a process there too',
      });
    }
  }

  private onClosed({ what }: OpenFile): void {
    this.openFiles--;
    if (what instanceof ArrayBuffer) return;
    const shared = what.address;
    shared.close(what);
    if (shared.size > 0) return;
    for (const [address, each] of this.sockets) {
      if (each !== shared) continue;
      this.sockets.delete(address);
      this.fabric.unbind(address, shared);
    }
  }
}
