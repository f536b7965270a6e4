/**
 * Credits: how many messages the peer has room for, as a protocol counts them. A sender takes one
 * for each message; the peer's messages return them.
 */
import { assert, checkValue, integer } from '../spi/checks/index.js';
import { FlowError, refusalOf } from './flow-error.js';
import {
  checkWait,
  type EndError,
  NO_OPTIONS,
  type WaitHost,
  type WaitOptions,
  Waits,
} from './wait.js';

const AMOUNT_LIMIT = 2 ** 31 - 1;
const AMOUNT = integer(0, AMOUNT_LIMIT);

/** Credits of the peer: never below 0. Further takers wait, in the order of the calls. */
export class Credits {
  private count: number;
  private readonly waits: Waits<void>;
  private ended: EndError | undefined = undefined;

  /** @param initial 0 to 2^31 - 1 @throws FlowError DAT_INVALID_PARAMETER */
  constructor(
    host: WaitHost,
    initial: number,
    private readonly limit = AMOUNT_LIMIT,
  ) {
    checkValue('initial', initial, AMOUNT, refusalOf('Credits'));
    this.count = initial;
    this.waits = new Waits(host, () => 'the peer has given no credit');
  }

  /** Credits that can be taken now. */
  get available(): number {
    return this.count;
  }

  /** Takes a credit if there is one and no other call waits. */
  tryTake(): boolean {
    if (this.ended !== undefined || this.count === 0 || !this.waits.isEmpty) return false;
    this.count--;
    return true;
  }

  /**
   * Takes a credit, or waits for one.
   * @throws FlowError DAT_TIMEOUT_EXPIRED, DAT_INTERRUPTED_CALL: none has been taken then; what
   * `end` says
   */
  async take(options: WaitOptions = NO_OPTIONS): Promise<void> {
    const operation = 'credits.take';
    checkWait(operation, options);
    if (this.ended !== undefined) throw this.ended(operation);
    if (!this.tryTake()) await this.waits.add(operation, options);
  }

  /**
   * Adds credits: the peer has room for so many more messages.
   * @param amount 0 on
   * @throws FlowError DAT_INVALID_PARAMETER when there would be more than the limit: then nothing
   * has changed
   */
  give(amount: number): void {
    const refuse = refusalOf('credits.give');
    checkValue('amount', amount, AMOUNT, refuse);
    if (this.count + amount > this.limit) {
      throw new FlowError('DAT_INVALID_PARAMETER', {
        operation: 'credits.give',
        message: `${this.count} credits and ${amount} more are above the limit of ${this.limit}`,
        value: amount,
      });
    }
    this.count += amount;
    while (this.count > 0 && this.waits.serve()) this.count--;
    assert(this.count >= 0, 'credits are not negative', this.count);
  }

  /** Ends pending waits with this error, and refuses later ones with it. */
  end(errorOf: EndError): void {
    this.ended ??= errorOf;
    this.waits.end(this.ended);
  }
}
