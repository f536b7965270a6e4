/** The calls of librdmacm with their failures as SpiError: the call, what it was about, errno. */
import type { Gid, QpState } from '../../../core/spi/index.js';
import {
  ADDRESS_BYTES,
  gidOfSocketAddress,
  portOfSocketAddress,
  type SocketAddress,
} from './address.js';
import {
  ATTRIBUTE_GID_WORD,
  ATTRIBUTE_WORD,
  ATTRIBUTE_WORDS,
  type CmNative,
} from '../addon/rdmacm.js';
import { errnoError } from '../system/errno.js';

/** Contents of a request or a reply (struct rdma_conn_param). */
export interface ConnectionParameters {
  readonly qpn: number;
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly usesSharedReceives: boolean;
}

/** Parameters for datagrams, which have no connection. */
export const NO_PARAMETERS: ConnectionParameters = {
  qpn: 0,
  responderResources: 0,
  initiatorDepth: 0,
  retryCount: 0,
  rnrRetryCount: 0,
  usesSharedReceives: false,
};

/** Both ends of an identifier, as rdma_cm knows them. */
export interface IdDescription {
  readonly localGid: Gid;
  readonly localPort: number;
  readonly remoteGid: Gid;
  readonly remotePort: number;
  readonly isIwarp: boolean;
}

/** Attributes of a queue pair's transition, as the CM has them. */
export interface CmQpAttributes {
  word(word: keyof typeof ATTRIBUTE_WORD): number;
  readonly remoteGid: Gid;
}

const TRANSPORT_IWARP = 1;

export class CmCalls {
  constructor(readonly native: CmNative) {}

  createId(channel: number, portSpace: number): number {
    return check('rdma_create_id', this.native.cmCreateId(channel, portSpace));
  }

  /** 0, or the errno: the caller can do nothing about it but say so. */
  destroyId(id: number): number {
    return -this.native.cmDestroyId(id);
  }

  migrateId(id: number, channel: number): void {
    check('rdma_migrate_id', this.native.cmMigrateId(id, channel));
  }

  bindAddress(id: number, { bytes, text }: SocketAddress): void {
    check('rdma_bind_addr', this.native.cmBindAddress(id, bytes), text);
  }

  resolveAddress(
    id: number,
    source: SocketAddress | undefined,
    destination: SocketAddress,
    timeoutMs: number,
  ): void {
    const { bytes, text } = destination;
    const result = this.native.cmResolveAddress(id, source?.bytes, bytes, timeoutMs);
    check('rdma_resolve_addr', result, text);
  }

  resolveRoute(id: number, timeoutMs: number): void {
    check('rdma_resolve_route', this.native.cmResolveRoute(id, timeoutMs));
  }

  setOption(id: number, level: number, name: number, value: Uint8Array): void {
    check('rdma_set_option', this.native.cmSetOption(id, level, name, value));
  }

  connect(id: number, parameters: ConnectionParameters, privateData: Uint8Array): void {
    check('rdma_connect', this.native.cmConnect(id, wordsOf(parameters), privateData));
  }

  establish(id: number): void {
    check('rdma_establish', this.native.cmEstablish(id));
  }

  listen(id: number, backlog: number): void {
    check('rdma_listen', this.native.cmListen(id, backlog));
  }

  accept(id: number, parameters: ConnectionParameters, privateData: Uint8Array): void {
    check('rdma_accept', this.native.cmAccept(id, wordsOf(parameters), privateData));
  }

  reject(id: number, privateData: Uint8Array): void {
    check('rdma_reject', this.native.cmReject(id, privateData));
  }

  notify(id: number, event: number): void {
    check('rdma_notify', this.native.cmNotify(id, event));
  }

  disconnect(id: number): void {
    check('rdma_disconnect', this.native.cmDisconnect(id));
  }

  queuePairAttributes(id: number, state: QpState): CmQpAttributes {
    const words = new Uint32Array(ATTRIBUTE_WORDS);
    check('rdma_init_qp_attr', this.native.cmQueuePairAttributes(id, state, words));
    const remoteGid = new Uint8Array(words.buffer, ATTRIBUTE_GID_WORD * 4, 16);
    return { word: (word) => words[ATTRIBUTE_WORD[word]] ?? 0, remoteGid };
  }

  describe(id: number): IdDescription {
    const out = new Uint8Array(2 * ADDRESS_BYTES + 12);
    check('the identifier', this.native.cmDescribeId(id, out));
    const local = out.subarray(0, ADDRESS_BYTES);
    const remote = out.subarray(ADDRESS_BYTES, 2 * ADDRESS_BYTES);
    const transport = new DataView(out.buffer).getUint32(2 * ADDRESS_BYTES + 4, true);
    return {
      localGid: gidOfSocketAddress(local),
      localPort: portOfSocketAddress(local),
      remoteGid: gidOfSocketAddress(remote),
      remotePort: portOfSocketAddress(remote),
      isIwarp: transport === TRANSPORT_IWARP,
    };
  }

  /** Name of the device that it is bound to; undefined before that. */
  deviceName(id: number): string | undefined {
    return this.native.cmDeviceName(id);
  }
}

/** @throws SpiError of a negative result */
function check(call: string, result: number, detail?: string): number {
  if (result < 0) throw errnoError(call, -result, detail);
  return result;
}

function wordsOf(parameters: ConnectionParameters): Uint32Array {
  return Uint32Array.of(
    parameters.qpn,
    parameters.responderResources,
    parameters.initiatorDepth,
    parameters.retryCount,
    parameters.rnrRetryCount,
    parameters.usesSharedReceives ? 1 : 0,
  );
}
