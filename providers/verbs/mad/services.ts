/** Common services of the agents of a port. */
import type { Logger, MadAgent, MadAgentOptions } from '../../../core/spi/index.js';
import type { RmppAllowance, RmppCounters } from '../../../plugins/mad/provider.js';
import type { UmadNative } from '../addon/umad.js';
import type { UmadSendServices } from './send.js';

/** Places of GIDs in `Device.gids` and in the kernel's table. */
export interface GidPlaces {
  hardwareGidIndex(localGidIndex: number): number;
  localGidIndex(hardwareIndex: number): number;
}

export interface UmadCounters {
  /** Responses that no request waits for any more. */
  unmatchedResponses: number;
  /** Transfers without response that turned out not to have arrived, after their report. */
  lateTimeouts: number;
  /** Datagrams without a GRH: their sender has no GID here. */
  withoutGid: number;
  /** Requests that the kernel has dropped without a word. */
  silences: number;
}

export interface UmadServices extends UmadSendServices {
  readonly native: UmadNative;
  readonly logger: Logger;
  /** The path of the character device. */
  readonly path: string;
  readonly own: GidPlaces;
  readonly counters: UmadCounters;
  readonly rmppCounters: RmppCounters;
  readonly rmppAllowance: RmppAllowance;
}

export interface PortAgent extends MadAgent {
  readonly options: MadAgentOptions;
  /** Resolves when unregistering is over. */
  readonly ended: Promise<void>;
}
