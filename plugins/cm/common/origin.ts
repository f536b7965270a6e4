/** Where a message came from, and what an answer to it takes over. */
import type { MadAddress } from '../../../core/spi/index.js';
import type { TransactionId } from './transaction-id.js';

export interface Origin {
  readonly source: MadAddress;
  readonly transactionId: TransactionId;
}
