import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import type { RunningCommand } from './command.js';
import { Guest } from './guest.js';
import type { GuestConfig } from './guest.js';
import { Host } from './host.js';
import type { Kernel } from './kernel.js';
import { runDir } from './sandbox.js';

const QUIET_MS = 200;
const QUIET_ROUNDS = 50;
/** The longest frame and more. A slot of the capture buffer is as long: less means more slots. */
const SNAP_BYTES = 16_384;
const BRIDGE = 'lab0';
const UNDO_IN_GUEST =
  'tc qdisc del dev eth0 root; tc qdisc del dev eth0 clsact; ip link set eth0 up';
const HOST_IPV4 = '10.77.0.1';
const HOST_IPV6 = 'fd77::1';

/** Ethernet MTUs, by the IB MTU that rxe makes of them. */
export const NETDEV_MTU_BYTES = { 1024: 1500, 4096: 9000 } as const;
export type PathMtu = keyof typeof NETDEV_MTU_BYTES;
export const PATH_MTUS = [1024, 4096] as const;

/** A bridge with the host's own address on it, and a tap for each guest. Sandbox only. */
export class Lab {
  readonly host = new Host(HOST_IPV4, HOST_IPV6);

  private constructor(readonly guests: readonly Guest[]) {}

  static async start(kernel: Kernel, guestCount: number): Promise<Lab> {
    const configs = networkFor(kernel, guestCount);
    return new Lab(await Promise.all(configs.map((config) => Guest.boot(config))));
  }

  guest(index: number): Guest {
    const guest = this.guests[index];
    if (guest === undefined) throw new Error(`guest ${index} of ${this.guests.length}`);
    return guest;
  }

  /** Changes the MTU of every link, and waits until rxe says so. */
  async setPathMtu(mtuBytes: PathMtu): Promise<void> {
    const netdevMtu = NETDEV_MTU_BYTES[mtuBytes];
    for (const guest of this.guests) ip(`link set ${guest.tap} mtu ${netdevMtu}`);
    ip(`link set ${BRIDGE} mtu ${netdevMtu}`);
    await Promise.all(
      this.guests.map(async (guest) => {
        const active = `ibv_devinfo -d rxe0 | grep -q 'active_mtu:[[:space:]]*${mtuBytes} '`;
        const wait = `for i in 1 2 3 4 5; do ${active} && exit; sleep 0.2; done; exit 1`;
        const result = await guest.run(`ip link set eth0 mtu ${netdevMtu}; ${wait}`);
        if (result.code !== 0) throw new Error(`${guest.name}: rxe0 did not get MTU ${mtuBytes}`);
      }),
    );
  }

  /** Captures RoCEv2 on the link of one guest. */
  async capture(name: string, guest: Guest): Promise<Capture> {
    const file = join(runDir, `${name}.pcap`);
    const options = `-i ${guest.tap} -s ${SNAP_BYTES} -B 65536 --immediate-mode -U -w '${file}'`;
    const tcpdump = this.host.spawn(`exec tcpdump ${options} udp port 4791`);
    await tcpdump.waitForOutput(/listening on/, 10_000);
    return new Capture(file, tcpdump);
  }

  /** After a case that has failed: ends what it has started, undoes what it did to the links. */
  async recover(): Promise<void> {
    this.host.killAll();
    await Promise.all(
      this.guests.map(async (guest) => {
        ip(`link set ${guest.tap} master ${BRIDGE} up`);
        if (!guest.isRunning) return;
        guest.killAll();
        await guest.run(UNDO_IN_GUEST);
      }),
    );
  }

  async powerOff(): Promise<void> {
    await Promise.all(this.guests.map((guest) => guest.powerOff()));
  }
}

export class Capture {
  constructor(
    readonly file: string,
    private readonly tcpdump: RunningCommand,
  ) {}

  /** Ends the capture when nothing comes any more and tcpdump has written all that came. */
  async stop(): Promise<void> {
    let before = -1;
    for (let round = 0; round < QUIET_ROUNDS; round++) {
      const { captured, received } = await this.#counts();
      if (captured === received && received === before) break;
      before = received;
      await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    }
    const { stderr } = await this.tcpdump.stop('SIGTERM');
    if (!/\n0 packets dropped by kernel/.test(stderr))
      throw new Error(`packets lost: ${stderr.slice(-300)}`);
  }

  /** SIGUSR1 makes tcpdump print a line such as "7 packets captured, 9 packets received by ...". */
  async #counts(): Promise<{ captured: number; received: number }> {
    const seen = this.tcpdump.stderr.length;
    this.tcpdump.kill('SIGUSR1');
    const pattern =
      /(\d+) packets? captured\D+(\d+) packets? received by filter\D+\d+ packets? dropped/;
    await this.tcpdump.waitForOutput(new RegExp(`[^]{${seen}}[^]*${pattern.source}`), 5000);
    const [, captured, received] = pattern.exec(this.tcpdump.stderr.slice(seen)) ?? [];
    return { captured: Number(captured), received: Number(received) };
  }
}

/** Makes the bridge and the taps; returns what each guest needs to know. */
export function networkFor(kernel: Kernel, guestCount: number): GuestConfig[] {
  const mtuBytes = NETDEV_MTU_BYTES[4096];
  ip('link set lo up');
  ip(`link add ${BRIDGE} type bridge`);
  ip(`addr add ${HOST_IPV4}/24 dev ${BRIDGE}`);
  ip(`-6 addr add ${HOST_IPV6}/64 dev ${BRIDGE} nodad`);
  const configs = Array.from({ length: guestCount }, (_, index): GuestConfig => {
    const tap = `tap${index}`;
    ip(`tuntap add dev ${tap} mode tap`);
    ip(`link set ${tap} master ${BRIDGE} mtu ${mtuBytes} up`);
    return {
      kernel,
      tap,
      mtuBytes,
      name: `guest${index}`,
      ipv4: `10.77.0.${index + 2}`,
      ipv6: `fd77::${index + 2}`,
      mac: `52:54:00:77:00:0${index + 2}`,
    };
  });
  ip(`link set ${BRIDGE} mtu ${mtuBytes} up`);
  return configs;
}

function ip(command: string): void {
  execFileSync('ip', command.split(' '));
}
