import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import { Capture } from './capture.js';
import { Guest, type GuestConfig, type GuestSize } from './guest.js';
import { Host } from './host.js';
import { repair } from './impair.js';
import type { Kernel } from './kernel.js';
import { runDir } from './sandbox.js';

/**
 * The longest RoCE frame and more, by Ethernet MTU. A slot of the capture buffer is as long,
 * rounded up to a power of two above a page: less means more slots, and no burst gets lost.
 */
const SNAP_BYTES = { 1500: 1800, 9000: 4600 } as const;
const FIRST_SUBNET = 77;

/** Ethernet MTUs, by the IB MTU that rxe makes of them. */
export const NETDEV_MTU_BYTES = { 1024: 1500, 4096: 9000 } as const;
export type PathMtu = keyof typeof NETDEV_MTU_BYTES;
export const PATH_MTUS = [1024, 4096] as const;

export interface LabOptions {
  readonly kernel: Kernel;
  readonly guestCount: number;
  /** Labs of one run have a network each, so that they share nothing. Default 0. */
  readonly lane?: number;
}

/** A bridge with the host's own address on it, and a tap for each guest. Sandbox only. */
export class Lab {
  readonly host: Host;
  private readonly all: Guest[] = [];
  private readonly lane: number;
  readonly bridge: string;
  private readonly kernel: Kernel;
  private made = 0;
  private netdevMtu: keyof typeof SNAP_BYTES = NETDEV_MTU_BYTES[4096];

  private constructor({ kernel, lane = 0 }: LabOptions) {
    this.kernel = kernel;
    this.lane = lane;
    this.bridge = `lab${lane}`;
    this.host = new Host(this.ipv4(1), this.ipv6(1));
    ip('link set lo up');
    ip(`link add ${this.bridge} type bridge`);
    ip(`addr add ${this.host.ipv4}/24 dev ${this.bridge}`);
    ip(`-6 addr add ${this.host.ipv6}/64 dev ${this.bridge} nodad`);
    ip(`link set ${this.bridge} mtu ${this.netdevMtu} up`);
  }

  static async start(options: LabOptions): Promise<Lab> {
    const lab = new Lab(options);
    const boots = Array.from({ length: options.guestCount }, () => lab.boot({}));
    lab.all.push(...(await Promise.all(boots)));
    return lab;
  }

  /** The network of a lab, and what a guest on it needs to know: for a shell. */
  static prepare(kernel: Kernel): GuestConfig {
    return new Lab({ kernel, guestCount: 0 }).addTap({});
  }

  get guests(): readonly Guest[] {
    return this.all;
  }

  guest(index: number): Guest {
    const guest = this.all[index];
    if (guest === undefined) throw new Error(`guest ${index} of ${this.all.length}`);
    return guest;
  }

  /** Runs `body` with one more guest, of any size, which it may end in any way. */
  async withGuest<T>(size: GuestSize, body: (guest: Guest) => Promise<T>): Promise<T> {
    const guest = await this.boot(size);
    this.all.push(guest);
    try {
      return await body(guest);
    } finally {
      await guest.kill();
      this.all.splice(this.all.indexOf(guest), 1);
      ip(`link delete ${guest.tap}`);
    }
  }

  /** Changes the MTU of every link, and waits until rxe says so. */
  async setPathMtu(mtuBytes: PathMtu): Promise<void> {
    const netdevMtu = NETDEV_MTU_BYTES[mtuBytes];
    this.netdevMtu = netdevMtu;
    for (const guest of this.all) ip(`link set ${guest.tap} mtu ${netdevMtu}`);
    ip(`link set ${this.bridge} mtu ${netdevMtu}`);
    await Promise.all(
      this.all.map(async (guest) => {
        const active = `ibv_devinfo -d rxe0 | grep -q 'active_mtu:[[:space:]]*${mtuBytes} '`;
        await guest.run(`ip link set eth0 mtu ${netdevMtu}`);
        await guest.holds(active, `rxe0 did not get MTU ${mtuBytes}`);
      }),
    );
  }

  /** Pulls a guest's cable: nothing passes, and neither end's link goes down. */
  unplug(guest: Guest): void {
    ip(`link set ${guest.tap} nomaster`);
  }

  plug(guest: Guest): void {
    ip(`link set ${guest.tap} master ${this.bridge} up`);
  }

  /** The host's own link: its routes go with it. */
  linkDown(): void {
    ip(`link set ${this.bridge} down`);
  }

  linkUp(): void {
    ip(`link set ${this.bridge} up`);
    ip(`-6 addr replace ${this.host.ipv6}/64 dev ${this.bridge} nodad`);
  }

  /** Captures RoCEv2 on the link of one guest. */
  async capture(name: string, guest: Guest): Promise<Capture> {
    const file = join(runDir, `${name}.pcap`);
    const snapBytes = SNAP_BYTES[this.netdevMtu];
    const options = `-i ${guest.tap} -s ${snapBytes} -B 65536 --immediate-mode -U -w '${file}'`;
    const tcpdump = this.host.spawn(`exec tcpdump ${options} udp port 4791`);
    await tcpdump.waitForOutput(/listening on/, 10_000);
    return new Capture(file, tcpdump);
  }

  /** After a case that has failed: ends what it has started, undoes what it did to the links. */
  async recover(): Promise<void> {
    this.host.killAll();
    this.linkUp();
    await Promise.all(
      this.all.map(async (guest) => {
        this.plug(guest);
        if (!guest.isRunning) return;
        guest.killAll();
        await guest.linkUp();
        await repair(guest);
      }),
    );
  }

  async powerOff(): Promise<void> {
    await Promise.all(this.all.map((guest) => guest.powerOff()));
  }

  private boot(size: GuestSize): Promise<Guest> {
    return Guest.boot(this.addTap(size));
  }

  private addTap(size: GuestSize): GuestConfig {
    const index = this.made++;
    const tap = `tap${this.lane}-${index}`;
    ip(`tuntap add dev ${tap} mode tap`);
    ip(`link set ${tap} master ${this.bridge} mtu ${this.netdevMtu} up`);
    const octet = index + 2;
    return {
      ...size,
      kernel: this.kernel,
      tap,
      mtuBytes: this.netdevMtu,
      name: `guest${this.lane}-${index}`,
      ipv4: this.ipv4(octet),
      ipv6: this.ipv6(octet),
      mac: `52:54:00:${FIRST_SUBNET}:${hexOf(this.lane)}:${hexOf(octet)}`,
    };
  }

  private ipv4(octet: number): string {
    return `10.${FIRST_SUBNET + this.lane}.0.${octet}`;
  }

  private ipv6(octet: number): string {
    return `fd${FIRST_SUBNET + this.lane}::${octet.toString(16)}`;
  }
}

function hexOf(octet: number): string {
  return octet.toString(16).padStart(2, '0');
}

function ip(command: string): void {
  execFileSync('ip', command.split(' '));
}
