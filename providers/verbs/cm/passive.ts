/** The passive side: the consumer's answer to a request; queue pair to RTR, REP; by RTU, to RTS. */
import type { CmAcceptOptions, CmEvent } from '../../../core/spi/index.js';
import {
  type Actions,
  checkAccept,
  QpControl,
  type QpPlan,
  requestGone,
  TableRunner,
  timeUsOfCode,
} from '../../../plugins/cm/provider.js';
import type { IdDescription } from './calls.js';
import { type CmServices, VerbsConnection } from './connection.js';
import { goneOr } from './failures.js';
import { qpPlanOf } from './qp-plan.js';
import { type CmAction, type CmInput, type CmState, PASSIVE_TABLE } from './states.js';

export class PassiveConnection extends VerbsConnection {
  protected onEvent: ((event: CmEvent) => void) | undefined;
  private plan: QpPlan | undefined;

  constructor(
    services: CmServices,
    id: number,
    private readonly description: IdDescription,
    /** Called when it no longer waits for the consumer. */
    private readonly onSettled: () => void,
  ) {
    super(services, 'REQ_RCVD', id, description.remoteGid);
  }

  get localPort(): number {
    return this.description.localPort;
  }

  /** @throws SpiError as CmRequest.accept */
  accept(options: CmAcceptOptions): void {
    checkAccept(options);
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
    this.timewaitUs = this.description.isIwarp ? 0 : timeUsOfCode(plan.ackTimeout);
    this.sendRep(options, plan);
    this.dispatch('accept');
  }

  /** @throws SpiError as CmRequest.reject */
  reject(privateData: Uint8Array): void {
    this.checkWaiting();
    try {
      this.services.calls.reject(this.id, privateData);
    } catch (error) {
      throw goneOr('connection', error);
    } finally {
      this.dispatch('close');
    }
  }

  override onActionsDone(from: CmState): void {
    super.onActionsDone(from);
    if (from === 'REQ_RCVD') this.onSettled();
  }

  /** Plans the queue pair. If the kernel no longer knows the request, the peer has given it up. */
  private planFor(options: CmAcceptOptions): QpPlan {
    try {
      return qpPlanOf(this.services, this.id, this.description.localGid, options);
    } catch (error) {
      this.dispatch('close');
      throw goneOr('connection', error);
    }
  }

  private sendRep(options: CmAcceptOptions, plan: QpPlan): void {
    const { qp, rnrRetryCount } = options;
    const parameters = this.parametersOf(qp, { ...plan, rnrRetryCount });
    try {
      this.services.calls.accept(this.id, parameters, options.privateData);
    } catch (error) {
      this.qpControl?.toError();
      this.dispatch('close');
      throw goneOr('connection', error);
    }
  }

  private checkWaiting(): void {
    if (this.state !== 'REQ_RCVD') throw requestGone('connection');
  }

  /** RTR to RTS; a queue pair that has failed meanwhile ends the connection. */
  private startQp(): void {
    this.moveQp('the queue pair cannot send', () => {
      if (this.plan && !this.description.isIwarp) this.qpControl?.toRts(this.plan);
    });
  }

  protected override dispatch(input: CmInput): boolean {
    return PassiveConnection.RUNNER.dispatch(this, input);
  }

  private static readonly ACTIONS: Actions<PassiveConnection, CmAction> = {
    ...VerbsConnection.COMMON,
    startQp: (c) => c.startQp(),
  };

  private static readonly RUNNER = new TableRunner(PASSIVE_TABLE, PassiveConnection.ACTIONS);
}
