/** Access rights that a queue pair grants its peer (IBTA 9.7.4.1.3). */
import { Access } from '../../../core/spi/index.js';
import { OPERATION } from '../../../core/spi/wire/opcode.js';

/**
 * @param access of the queue pair, as Access
 * @param operation of a request, as OPERATION
 */
export function permits(access: number, operation: number): boolean {
  switch (operation) {
    case OPERATION.send:
      return true;
    case OPERATION.write:
      return (access & Access.REMOTE_WRITE) !== 0;
    case OPERATION.readRequest:
      return (access & Access.REMOTE_READ) !== 0;
    default:
      return isAtomicOperation(operation) && (access & Access.REMOTE_ATOMIC) !== 0;
  }
}

export function isAtomicOperation(operation: number): boolean {
  return operation === OPERATION.compareSwap || operation === OPERATION.fetchAdd;
}
