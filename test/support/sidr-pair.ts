/** Two nodes of which one asks the other for the queue pair of a datagram service. */
import {
  type CmListener,
  type CmListenOptions,
  type CmResolution,
  type CmResolveOptions,
  type CmResolveRequest,
  type CmResolveResult,
  PortSpace,
  serviceIdOf,
} from '../../core/spi/index.js';
import { CmPair, text } from './cm-pair.js';

export const DATAGRAMS = serviceIdOf(PortSpace.UDP, 0x1c06);
/** RDMA_UDP_QKEY of Linux. */
export const UDP_QKEY = 0x01234567;

export interface Asking {
  readonly resolution: CmResolution;
  readonly results: CmResolveResult[];
}

export class SidrPair extends CmPair {
  readonly inquiries: CmResolveRequest[] = [];

  /** Node b has the service. */
  serve(
    onResolve: (request: CmResolveRequest) => void = () => undefined,
    overrides: Partial<CmListenOptions> = {},
  ): CmListener {
    return this.b.cm.listen({
      serviceId: DATAGRAMS,
      backlog: 16,
      onResolve: (request) => {
        this.inquiries.push(request);
        onResolve(request);
      },
      ...overrides,
    });
  }

  /** Node a asks. */
  ask(overrides: Partial<CmResolveOptions> = {}): Asking {
    const results: CmResolveResult[] = [];
    const resolution = this.a.cm.resolve({
      remoteGid: this.b.device.gids[0] ?? new Uint8Array(16),
      serviceId: DATAGRAMS,
      privateData: text('who'),
      timeoutUs: Infinity,
      onResult: (result) => results.push(result),
      ...overrides,
    });
    return { resolution, results };
  }
}

/** Answers with this queue pair. */
export const withQpn =
  (qpn: number) =>
  (request: CmResolveRequest): void =>
    request.accept({ qpn, qkey: UDP_QKEY, privateData: text('me') });
