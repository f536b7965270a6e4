/** The passive side: the consumer's answer to a request; queue pair to RTR, REP; by RTU, to RTS. */
import { CmPrivateData, SpiError } from '../../../core/spi/index.js';
import type { CmAcceptOptions, CmEvent } from '../../../core/spi/index.js';
import {
  QpControl,
  TableRunner,
  checkConnectable,
  checkParameters,
  checkPrivateData,
} from '../../../plugins/cm/provider.js';
import type { QpPlan } from '../../../plugins/cm/provider.js';
import type { IdDescription } from './calls.js';
import { messageOf, timewaitUsOf, VerbsConnection } from './connection.js';
import type { CmServices } from './connection.js';
import { qpPlanOf } from './qp-plan.js';
import { PASSIVE_TABLE } from './states.js';
import type { CmAction, CmInput, CmState } from './states.js';

export class PassiveConnection extends VerbsConnection {
  protected onEvent: ((event: CmEvent) => void) | undefined;
  private plan: QpPlan | undefined;

  constructor(
    services: CmServices,
    id: number,
    private readonly description: IdDescription,
  ) {
    super(services, 'REQ_RCVD', id, description.remoteGid);
  }

  /** @throws SpiError as CmRequest.accept */
  accept(options: CmAcceptOptions): void {
    checkPrivateData('REP', options.privateData, CmPrivateData.REP);
    checkParameters(options);
    checkConnectable(options.qp);
    this.checkWaiting();
    const plan = this.planFor(options);
    const control = new QpControl(options.qp, this);
    try {
      if (!this.description.isIwarp) control.toRtr(plan);
    } catch (error) {
      control.release();
      throw error;
    }
    this.plan = plan;
    this.qpControl = control;
    this.onEvent = options.onEvent;
    this.timewaitUs = this.description.isIwarp ? 0 : timewaitUsOf(plan.ackTimeout);
    this.sendRep(options, plan);
    this.dispatch('accept');
  }

  /** @throws SpiError as CmRequest.reject */
  reject(privateData: Uint8Array): void {
    this.checkWaiting();
    try {
      this.services.calls.reject(this.id, privateData);
    } catch (error) {
      throw goneOr(error);
    } finally {
      this.dispatch('close');
    }
  }

  get waitsForConsumer(): boolean {
    return this.state === 'REQ_RCVD';
  }

  /** What the kernel no longer knows of has been given up by the peer. */
  private planFor(options: CmAcceptOptions): QpPlan {
    try {
      return qpPlanOf(this.services, this.id, this.description.localGid, options);
    } catch (error) {
      this.dispatch('close');
      throw goneOr(error);
    }
  }

  private sendRep(options: CmAcceptOptions, plan: QpPlan): void {
    const { qp, rnrRetryCount } = options;
    const { maxResponderResources, maxInitiatorDepth } = this.services.device.attributes;
    const parameters = {
      qpn: qp.qpn,
      responderResources: Math.min(plan.responderResources, maxResponderResources),
      initiatorDepth: Math.min(plan.initiatorDepth, maxInitiatorDepth),
      retryCount: plan.retryCount,
      rnrRetryCount,
      usesSharedReceives: qp.receiveRing === undefined,
    };
    try {
      this.services.calls.accept(this.id, parameters, options.privateData);
    } catch (error) {
      this.qpControl?.toError();
      this.dispatch('close');
      throw goneOr(error);
    }
  }

  private checkWaiting(): void {
    if (!this.waitsForConsumer) throw gone('answered already, or given up by the peer');
  }

  /** RTR to RTS; a queue pair that has failed meanwhile ends the connection. */
  private startQp(): void {
    try {
      if (this.plan && !this.description.isIwarp) this.qpControl?.toRts(this.plan);
    } catch (error) {
      this.failure = `the queue pair cannot send: ${messageOf(error)}`;
      this.note(this.failure);
      this.dispatch('qpFailed');
      return;
    }
    this.dispatch('qpReady');
  }

  protected override dispatch(input: CmInput): boolean {
    return PassiveConnection.RUNNER.dispatch(this, input);
  }

  private static readonly RUNNER = new TableRunner<PassiveConnection, CmState, CmInput, CmAction>(
    PASSIVE_TABLE,
    { ...VerbsConnection.COMMON, startQp: (c) => c.startQp() },
  );
}

function gone(why: string): SpiError {
  return new SpiError('ENOTCONN', `the connection request is gone: ${why}`);
}

/** EINVAL of a call on a request says that the kernel has none waiting there. */
function goneOr(error: unknown): unknown {
  return error instanceof SpiError && error.code === 'EINVAL' ? gone(error.message) : error;
}
