/**
 * An endpoint that has accepted a connection request, over the real CM module: what happens from
 * here on is up to the test, step by step. Nothing runs by itself.
 */
import {
  DatError,
  type DatEvent,
  type Ep,
  type EpAttributeOptions,
  type Evd,
  EvdFlags,
  type Ia,
  type Lmr,
  openIa,
} from '../../core/index.js';
import {
  type AsyncEventType,
  gidFromIp,
  PortSpace,
  QpState,
  serviceIdOf,
} from '../../core/spi/index.js';
import { cm } from '../../plugins/cm/index.js';
import type { CmMessage } from '../../plugins/cm/wire/message.js';
import type { CmReq } from '../../plugins/cm/wire/req.js';
import { texts } from './fake-endpoints.js';
import { FakeProvider } from './fake-provider.js';
import type { ScriptedQueuePair } from './scripted-queue-pair.js';
import { WireMad } from './wire-mad.js';

const PEER = gidFromIp('192.0.2.9');
const PEER_COMM_ID = 77;
const PEER_QPN = 0x99;
const NONE = new Uint8Array(0);

export interface SceneOptions {
  /** Connection events and completions go to an EVD each. */
  readonly apart?: boolean;
  readonly attributes?: EpAttributeOptions;
}

export class AcceptingScene {
  /** Events as the consumer has taken them. */
  readonly taken: string[] = [];
  /** Asynchronous events of the queue pair that came through to core. */
  readonly forwarded: AsyncEventType[] = [];
  readonly refusals: string[] = [];

  private constructor(
    readonly fake: FakeProvider,
    readonly mad: WireMad,
    private readonly ia: Ia,
    readonly ep: Ep,
    readonly lmr: Lmr,
    private readonly evds: readonly Evd[],
  ) {}

  static async open(options: SceneOptions = {}): Promise<AcceptingScene> {
    const fake = new FakeProvider();
    const mad = new WireMad();
    const ia = await openIa(fake.plugin(), { modules: { mad: mad.plugin(), cm: cm({}) } });
    const pz = ia.createPz();
    const lmr = ia.allocate(4096, { pz });
    const dtoEvd = ia.createEvd({ qlen: 64 });
    const connectEvd = options.apart
      ? ia.createEvd({ qlen: 64, streams: EvdFlags.CONNECTION })
      : dtoEvd;
    const { attributes = {} } = options;
    const evds = { recvEvd: dtoEvd, requestEvd: dtoEvd, connectEvd };
    const ep = ia.createEndpoint({ pz, ...evds, attributes });
    const scene = new AcceptingScene(fake, mad, ia, ep, lmr, [...new Set([connectEvd, dtoEvd])]);
    scene.watchEvents();
    const requests = ia.createEvd({ qlen: 4, streams: EvdFlags.CR });
    const psp = ia.createPsp({ connQual: 7, evd: requests });
    mad.deliver({ name: 'REQ', body: REQ }, PEER);
    fake.world.pump();
    const event = requests.dequeue();
    if (event?.type !== 'connection-request') throw new Error('no request has come');
    for (let i = 0; i < 3; i++) ep.postRecv(lmr.segment(i * 64, 64), 100 + i);
    event.cr.accept(ep);
    psp.free();
    fake.world.pump();
    return scene;
  }

  get qp(): ScriptedQueuePair {
    return this.fake.device.qp;
  }

  get messages(): string[] {
    return this.mad.sent.map(({ name }) => name);
  }

  /** Cookies of the requests that the device has been shown. */
  get shown(): number[] {
    return this.qp.work.map(({ cookie }) => cookie);
  }

  // --- what can happen --------------------------------------------------------------------------

  /** A message of the peer's arrives. */
  message(name: 'RTU' | 'DREQ' | 'DREP' | 'REJ'): void {
    const rep = this.mad.sent.find((message) => message.name === 'REP');
    if (rep?.name !== 'REP') throw new Error('no REP was sent');
    const ids = { localCommId: PEER_COMM_ID, remoteCommId: rep.body.localCommId };
    const remoteQpn = this.qp.qpn;
    const bodies: Record<typeof name, CmMessage> = {
      RTU: { name: 'RTU', body: { ...ids, privateData: NONE } },
      DREP: { name: 'DREP', body: { ...ids, privateData: NONE } },
      DREQ: { name: 'DREQ', body: { ...ids, remoteQpn, privateData: NONE } },
      REJ: { name: 'REJ', body: { ...ids, ...REJECTION } },
    };
    this.mad.deliver(bodies[name], PEER);
  }

  /** A message of the connection arrives: its completion is in the queue, unless it is over. */
  data(): void {
    if (this.qp.state !== QpState.ERR) this.qp.completeReceive(8);
  }

  /** The device tells of something; COMM_EST for one. */
  event(event: AsyncEventType): void {
    this.qp.eventHandler(event);
  }

  /** What was deferred runs: handlers of the CM and of the device. */
  pump(): void {
    this.fake.world.pump();
  }

  passTime(us: number): void {
    this.fake.world.advance(us);
  }

  /**
   * The consumer takes all events that there are. One with two EVDs looks for what has become of
   * the connection before it handles a completion.
   */
  poll(): void {
    const [connectEvd, dtoEvd = connectEvd] = this.evds;
    this.drain(connectEvd);
    for (let event = dtoEvd?.dequeue(); event !== undefined; event = dtoEvd?.dequeue()) {
      if (dtoEvd !== connectEvd) this.drain(connectEvd);
      this.take(event);
    }
  }

  private drain(evd: Evd | undefined): void {
    for (let event = evd?.dequeue(); event !== undefined; event = evd?.dequeue()) this.take(event);
  }

  /** The consumer posts a send, and remembers a refusal. */
  post(cookie: number): void {
    try {
      this.ep.postSend(this.lmr.segment(0, 8), cookie);
    } catch (error) {
      if (!DatError.isDatError(error)) throw error;
      this.refusals.push(`${cookie} ${error.subtype ?? error.code}`);
    }
  }

  disconnect(): void {
    this.ep.disconnect('abrupt');
  }

  /** What is open stays in memory: a search over many scenes closes each. */
  async close(): Promise<void> {
    let open = true;
    const closed = this.ia.close('abrupt').finally(() => (open = false));
    while (open) {
      this.pump();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await closed;
  }

  private take(event: DatEvent): void {
    this.taken.push(...texts([event]));
  }

  /** Core's handler, which the CM stands in front of. */
  private watchEvents(): void {
    const { qp } = this;
    const inner = qp.eventHandler;
    qp.eventHandler = (event) => {
      this.forwarded.push(event);
      inner(event);
    };
  }
}

const REJECTION = {
  messageRejected: 2,
  rejectInfoLength: 0,
  reason: 28,
  additionalRejectInfo: NONE,
  privateData: NONE,
};

/** Without rdma_cm's header, its private data would be refused. */
const CMA_HEADER = Uint8Array.from([
  ...[0, 0x40, 0, 9],
  ...[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 9],
  ...[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1],
]);

const REQ: CmReq = {
  localCommId: PEER_COMM_ID,
  vendorId: 0,
  serviceId: serviceIdOf(PortSpace.TCP, 7),
  localCaGuid: 0x1234n,
  localQkey: 0,
  localQpn: PEER_QPN,
  responderResources: 4,
  localEecn: 0,
  initiatorDepth: 4,
  remoteEecn: 0,
  remoteCmResponseTimeout: 20,
  transportServiceType: 0,
  endToEndFlowControl: 0,
  startingPsn: 5,
  localCmResponseTimeout: 18,
  retryCount: 7,
  partitionKey: 0xffff,
  pathMtu: 3,
  rdcExists: 0,
  rnrRetryCount: 7,
  maxCmRetries: 3,
  srq: 0,
  extendedTransportType: 0,
  primaryLocalLid: 0xffff,
  primaryRemoteLid: 0xffff,
  primaryLocalGid: PEER,
  primaryRemoteGid: gidFromIp('192.0.2.1'),
  primaryFlowLabel: 0,
  primaryPacketRate: 0,
  primaryTrafficClass: 0,
  primaryHopLimit: 64,
  primarySl: 0,
  primarySubnetLocal: 0,
  primaryLocalAckTimeout: 16,
  alternateLocalLid: 0,
  alternateRemoteLid: 0,
  alternateLocalGid: new Uint8Array(16),
  alternateRemoteGid: new Uint8Array(16),
  alternateFlowLabel: 0,
  alternatePacketRate: 0,
  alternateTrafficClass: 0,
  alternateHopLimit: 0,
  alternateSl: 0,
  alternateSubnetLocal: 0,
  alternateLocalAckTimeout: 0,
  sapSupported: 0,
  privateData: CMA_HEADER,
};
