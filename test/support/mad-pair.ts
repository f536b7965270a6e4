/** Two MAD modules on fake devices, and MADs of a vendor class to pass between them. */
import {
  gidFromIp,
  GSI_QKEY,
  GSI_QPN,
  type MadAddress,
  type MadAgent,
  type MadAgentOptions,
  type MadSend,
  nameOf,
  silentLogger,
  WcStatus,
} from '../../core/spi/index.js';
import { Mad, type MadOptions } from '../../plugins/mad/index.js';
import {
  emitMadHeader,
  type MadHeader,
  MadMethod,
  parseMadHeader,
} from '../../core/spi/modules/mad-header.js';
import { SeededRandom } from '../../providers/mock/index.js';
import { FakeDevice } from './fake-gsi-device.js';
import { FakeNetwork } from './fake-network.js';
import type { FakeQueuePair } from './fake-queue-pair.js';
import { VirtualWorld } from './virtual-world.js';

/** Vendor range 1: no OUI. */
export const VENDOR_CLASS = 0x0a;

export class MadNode {
  readonly device: FakeDevice;
  readonly mad: Mad;

  constructor(
    readonly network: FakeNetwork,
    ip: string,
    options: MadOptions,
  ) {
    const { world } = network;
    this.device = new FakeDevice(network, [gidFromIp(ip)], {});
    const random = new SeededRandom(network.devices.length);
    const services = { timers: world, clock: world, scheduler: world, logger: silentLogger };
    this.mad = new Mad({ device: this.device, random, ...services }, options);
  }

  get qp1(): FakeQueuePair {
    if (!this.device.qp1) throw new Error('no QP1');
    return this.device.qp1;
  }

  get address(): MadAddress {
    const gid = this.device.gids[0] ?? new Uint8Array(16);
    return { gid, localGidIndex: 0, qpn: GSI_QPN, qkey: GSI_QKEY };
  }
}

export class MadPair {
  readonly world = new VirtualWorld();
  readonly network = new FakeNetwork(this.world);
  readonly a: MadNode;
  readonly b: MadNode;
  /** What handlers were called, in order: `receive`, `response <context>`, `<status> <context>`. */
  readonly log: string[] = [];

  constructor(options: { a?: MadOptions; b?: MadOptions } = {}) {
    this.a = new MadNode(this.network, '10.0.0.1', options.a ?? {});
    this.b = new MadNode(this.network, '10.0.0.2', options.b ?? {});
  }

  /** An agent on `a` that logs. */
  asker(overrides: Partial<MadAgentOptions> = {}): MadAgent {
    return this.a.mad.registerAgent({
      managementClass: VENDOR_CLASS,
      classVersion: 1,
      methods: [],
      onReceive: ({ request }) => {
        this.log.push(request ? `response ${String(request.context)}` : 'receive');
      },
      onSend: ({ handle, status }) => {
        const where = this.world.isExpiring ? 'in a timer: ' : '';
        this.log.push(`${where}${nameOf(WcStatus, status)} ${String(handle.context)}`);
      },
      ...overrides,
    });
  }

  /** An agent on `b` that answers each Get at once, with the request's bytes. */
  answerer(): MadAgent {
    const agent: MadAgent = this.b.mad.registerAgent({
      managementClass: VENDOR_CLASS,
      classVersion: 1,
      methods: [MadMethod.GET],
      onReceive: ({ data, source }) => {
        agent.send({ destination: source, data: answerTo(data), timeoutUs: 0, retries: 0 });
      },
      onSend: () => undefined,
    });
    return agent;
  }

  /** A Get from `agent` to `b`; a response is awaited for a millisecond unless said otherwise. */
  ask(agent: MadAgent, context: string, overrides: Partial<MadSend> = {}): MadSend {
    return {
      destination: this.b.address,
      data: madOf({ transactionIdHi: agent.hiTid, transactionIdLo: nextTransaction++ }),
      timeoutUs: 1_000,
      retries: 0,
      context,
      ...overrides,
    };
  }
}

let nextTransaction = 1;

export function madOf(overrides: Partial<MadHeader>): Uint8Array {
  const data = new Uint8Array(256);
  emitMadHeader(
    {
      baseVersion: 1,
      managementClass: VENDOR_CLASS,
      classVersion: 1,
      method: MadMethod.GET,
      status: 0,
      classSpecific: 0,
      transactionIdHi: 0,
      transactionIdLo: 0,
      attributeId: 0x20,
      attributeModifier: 0,
      ...overrides,
    },
    data,
  );
  return data;
}

export function headerOf(data: Uint8Array): MadHeader {
  const header = parseMadHeader(data);
  if (!header) throw new Error('not a MAD');
  return header;
}

export function answerTo(request: Uint8Array): Uint8Array {
  const data = request.slice();
  emitMadHeader({ ...headerOf(request), method: MadMethod.GET_RESP }, data);
  return data;
}
