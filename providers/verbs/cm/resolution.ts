/** Asking for the queue pair of a datagram service (SIDR), through a UDP identifier. */
import {
  CmPrivateData,
  type CmResolution,
  type CmResolveOptions,
  type CmResolveResult,
  nameOf,
  Timer,
} from '../../../core/spi/index.js';
import {
  type Actions,
  checkPeer,
  checkPrivateData,
  type Machine,
  messageOf,
  NO_DATA,
  startWithin,
  TableRunner,
} from '../../../plugins/cm/provider.js';
import { peerText } from './address.js';
import { NO_PARAMETERS } from './calls.js';
import type { CmNativeEvent } from './channel.js';
import type { CmIdOwner, CmServices } from './connection.js';
import { failureText } from './failures.js';
import { checkDevice, idTowards } from './identifier.js';
import { CmEventType } from '../addon/rdmacm.js';
import {
  RESOLUTION_TABLE,
  type ResolutionAction,
  type ResolutionInput,
  type ResolutionState,
} from './resolution-states.js';

const NO_ANSWER = { status: -1, qpn: 0, qkey: 0, privateData: NO_DATA } as const;

export class VerbsResolution
  implements CmResolution, CmIdOwner, Machine<ResolutionState, ResolutionInput>
{
  state: ResolutionState = 'ADDR_QUERY';
  private cancelled = false;
  private answer: Pick<CmResolveResult, 'status' | 'qpn' | 'qkey' | 'privateData'> = NO_ANSWER;
  private failure = 'no answer';
  private readonly deadline = new Timer(() => this.dispatch('deadline'));

  private constructor(
    private readonly services: CmServices,
    private readonly id: number,
    private readonly options: CmResolveOptions,
  ) {
    services.own(id, this);
    startWithin(services, this.deadline, options.timeoutUs);
  }

  /** @throws SpiError as CmModule.resolve; also what rdma_cm refuses at once */
  static begin(services: CmServices, given: CmResolveOptions): VerbsResolution {
    checkPeer(given);
    checkPrivateData('SIDR_REQ', given.privateData, CmPrivateData.SIDR_REQ);
    const { id } = idTowards(services, given);
    const remoteGid = given.remoteGid.slice();
    const privateData = given.privateData.slice();
    return new VerbsResolution(services, id, { ...given, remoteGid, privateData });
  }

  cancel(): void {
    this.cancelled = true;
    this.close();
  }

  close(): void {
    this.dispatch('close');
  }

  /** A positive status of UNREACHABLE is the peer's answer. */
  onNativeEvent(event: CmNativeEvent): void {
    const isRefusal = event.type === CmEventType.UNREACHABLE && event.status > 0;
    this.answer = event;
    this.failure = failureText(event);
    this.dispatch(isRefusal ? 'refused' : (nameOf(CmEventType, event.type) as ResolutionInput));
  }

  private dispatch(input: ResolutionInput): void {
    VerbsResolution.RUNNER.dispatch(this, input);
  }

  private attempt(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.failure = messageOf(error);
      this.dispatch('callFailed');
    }
  }

  private report(result: CmResolveResult): void {
    this.services.defer(() => {
      if (!this.cancelled) this.options.onResult(result);
    });
  }

  private static readonly ACTIONS: Actions<VerbsResolution, ResolutionAction> = {
    resolveRoute: (r) => {
      r.attempt(() => {
        checkDevice(r.services, r.id);
        r.services.calls.resolveRoute(r.id, r.services.resolveTimeoutMs);
      });
    },
    sendReq: (r) => {
      r.attempt(() => r.services.calls.connect(r.id, NO_PARAMETERS, r.options.privateData));
    },
    letGo: ({ services, deadline, id }) => {
      services.timers.stop(deadline);
      services.destroyId(id);
    },
    reportAnswer: (r) => {
      const { qpn, qkey, privateData } = r.answer;
      r.report({ status: 0, qpn, qkey, privateData });
    },
    reportRefusal: (r) => {
      const { status, privateData } = r.answer;
      r.report({ status, qpn: 0, qkey: 0, privateData });
    },
    reportUnreachable: (r) => {
      const { device, logger } = r.services;
      const peer = peerText(r.options.remoteGid);
      logger.debug(`CM: no answer from ${peer} to ${device.name}: ${r.failure}`);
      r.report({ ...NO_ANSWER, failure: 'unreachable' });
    },
    reportTimedOut: (r) => r.report({ ...NO_ANSWER, failure: 'timed-out' }),
  };

  private static readonly RUNNER = new TableRunner(RESOLUTION_TABLE, VerbsResolution.ACTIONS);
}
