/**
 * The addon of providers/verbs/native: its calls as they are. Objects are numbers that hold for all
 * devices of an environment. Makers return one, or -errno; the others errno or 0. No call blocks,
 * none throws, none calls back.
 */
import { type FileMapper, loadAddon, type MemorySharer } from '../../host/index.js';
import { addonMissing } from '../system/errors.js';

type Memory = Uint8Array | Uint32Array;
/** Memory of a ring, its entries and their stride. */
export type RingArguments = readonly [memory: Memory, entries: number, strideBytes: number];
type NoRing = readonly [undefined, undefined, undefined];

/** `ibv_device_attr`. */
export interface NativeDeviceAttributes {
  readonly firmwareVersion: string;
  readonly nodeGuid: bigint;
  readonly maxMrBytes: bigint;
  readonly vendorId: number;
  readonly vendorPartId: number;
  readonly hardwareVersion: number;
  readonly maxQp: number;
  readonly maxQpWr: number;
  readonly capabilityFlags: number;
  readonly maxSge: number;
  readonly maxCq: number;
  readonly maxCqe: number;
  readonly maxMr: number;
  readonly maxPd: number;
  /** Served, and issued, by a queue pair. */
  readonly maxQpRdAtom: number;
  readonly maxQpInitRdAtom: number;
  readonly atomicCapability: number;
  readonly maxMw: number;
  readonly maxAh: number;
  readonly maxMulticastGroups: number;
  readonly maxSrq: number;
  readonly maxSrqWr: number;
  readonly maxSrqSge: number;
  readonly localAckDelay: number;
  readonly ports: number;
}

/** `ibv_port_attr`. */
export interface NativePortAttributes {
  readonly state: number;
  /** Path MTU codes. */
  readonly maxMtu: number;
  readonly activeMtu: number;
  readonly gidTableLength: number;
  readonly maxMessageBytes: number;
  readonly lid: number;
  readonly linkLayer: number;
  readonly physicalState: number;
}

export interface VerbsAddon extends FileMapper, MemorySharer, XrcNative {
  /** Loads a shared library; does nothing if it is loaded. @returns what is missing, in words */
  load(library: 'verbs' | 'rdmacm' | 'umad', path?: string): string | undefined;

  /** Functions that the addon looks up in a library, and so those that it may call. */
  functions(library: 'verbs' | 'rdmacm' | 'umad'): string[];

  /** @returns names, or errno */
  listDevices(): string[] | number;
  openDevice(
    name: string,
    onNotify: (cq: number) => void,
    onEvent: (type: number, object: number, failedCall?: number) => void,
  ): number;
  /** With `force` 1 its objects are destroyed first; else EBUSY while there are any. */
  closeDevice(device: number, force: number): number;
  /** Sets whether waiting for the device's events keeps the process alive. */
  setAlive(device: number, alive: number): number;
  queryDevice(device: number): NativeDeviceAttributes | number;
  queryPort(device: number, port: number): NativePortAttributes | number;
  /** @returns type of the GID (0 unknown or InfiniBand, 1 RoCE v1, 2 RoCE v2), or -errno */
  queryGid(device: number, port: number, index: number, out: Uint8Array): number;

  allocPd(device: number): number;
  deallocPd(pd: number): number;
  /** `out` receives lkey, rkey and the iova's halves. */
  regMr(
    pd: number,
    memory: Memory,
    access: number,
    iova: bigint | undefined,
    out: Uint32Array,
  ): number;
  deregMr(mr: number): number;
  /** Windows and address handles are numbers of their device. */
  allocMw(pd: number, type: number): number;
  mwRkey(device: number, mw: number): number;
  deallocMw(device: number, mw: number): number;
  /** @param path as attribute-words.ts makes it */
  createAh(pd: number, gid: Uint8Array, path: Uint32Array): number;
  destroyAh(pd: number, ah: number): number;
  /** Whole pages of zeros; or errno. */
  allocate(lengthBytes: number): ArrayBuffer | number;

  createCq(device: number, ...ring: RingArguments): number;
  resizeCq(cq: number, ...ring: RingArguments): number;
  destroyCq(cq: number): number;
  createSrq(
    pd: number,
    maxWr: number,
    maxSge: number,
    ...rest: readonly [...slots: RingArguments, ...submissions: RingArguments, out: Uint32Array]
  ): number;
  replaceSrqRings(
    srq: number,
    ...rings: readonly [...slots: RingArguments, ...submissions: RingArguments]
  ): number;
  modifySrq(srq: number, mask: number, maxWr: number, limit: number): number;
  destroySrq(srq: number): number;
  /** create-queue-pair.ts has the words of the record, which receives the QPN. */
  createQp(
    record: Uint32Array,
    ...rings: readonly [...sends: RingArguments, ...receives: RingArguments | NoRing]
  ): number;
  /** attribute-words.ts has the words. */
  modifyQp(qp: number, mask: number, attributes: Uint32Array): number;
  queryQp(qp: number, mask: number, attributes: Uint32Array): number;
  /** `netdev`: the interface at which the host becomes a member too. */
  multicast(qp: number, gid: Uint8Array, attach: 0 | 1, netdev?: string): number;
  destroyQp(qp: number): number;

  postSends(qp: number): number;
  postReceives(qp: number): number;
  postShared(srq: number): number;
  /** Readable completions, or -1. */
  poll(cq: number): number;
  arm(cqAndSolicited: number): number;
  /** Polls all queues of a device; how many completions have come. */
  progress(device: number): number;
}

let loaded: VerbsAddon | undefined;

/**
 * One instance an environment (the main thread, or a worker).
 * @throws SpiError('ENODEV') when it was not built, and is not in the package
 */
export function loadVerbsAddon(): VerbsAddon {
  if (loaded !== undefined) return loaded;
  const result = loadAddon('verbs.node');
  if ('problem' in result) throw addonMissing(result.problem);
  loaded = result.addon as VerbsAddon;
  return loaded;
}

/** XRC in the addon (native/xrc.cc). Makers return a number, or -errno; the others errno or 0. */
interface XrcNative {
  /** @param file descriptor, or -1 for a private domain @param flags of open(2) */
  openXrcd(device: number, file: number, flags: number): number;
  closeXrcd(domain: number): number;
  createXrcSrq(
    pd: number,
    maxWr: number,
    maxSge: number,
    ...rest: [...RingArguments, ...RingArguments, Uint32Array, domain: number, cq: number]
  ): number;
  /** A record as of `createQp`. */
  createXrcInitiator(record: Uint32Array, ...sendRing: RingArguments): number;
  createXrcTarget(domain: number, out: Memory): number;
  openXrcTarget(domain: number, qpn: number, out: Memory): number;
}
