/** Task management of a session (RFC 7143, 11.5): each function, as a table. */
import { TASK_FUNCTION, TASK_RESPONSE, type TaskManagementRequest } from '../../wire/index.js';
import type { DeviceServer, ManagementAnswer, ManagementFunction } from './device-server.js';
import type { TaskSet } from './task-set.js';

export type TaskResponse = (typeof TASK_RESPONSE)[keyof typeof TASK_RESPONSE];

/**
 * Functions by code: of the device server, of this session, or the response to an unsupported one.
 */
const FUNCTIONS: Readonly<Record<number, ManagementFunction | 'ABORT TASK' | TaskResponse>> = {
  [TASK_FUNCTION.ABORT_TASK]: 'ABORT TASK',
  [TASK_FUNCTION.ABORT_TASK_SET]: 'ABORT TASK SET',
  [TASK_FUNCTION.CLEAR_ACA]: 'CLEAR ACA',
  [TASK_FUNCTION.CLEAR_TASK_SET]: 'CLEAR TASK SET',
  [TASK_FUNCTION.LOGICAL_UNIT_RESET]: 'LOGICAL UNIT RESET',
  [TASK_FUNCTION.TARGET_WARM_RESET]: 'TARGET WARM RESET',
  [TASK_FUNCTION.TARGET_COLD_RESET]: 'TARGET COLD RESET',
  // Reassignment is for error recovery level 2.
  [TASK_FUNCTION.TASK_REASSIGN]: TASK_RESPONSE.REASSIGN_NOT_SUPPORTED,
};

const RESPONSES: Readonly<Record<ManagementAnswer, TaskResponse>> = {
  'FUNCTION COMPLETE': TASK_RESPONSE.COMPLETE,
  'INCORRECT LOGICAL UNIT NUMBER': TASK_RESPONSE.LUN_DOES_NOT_EXIST,
  'FUNCTION NOT SUPPORTED': TASK_RESPONSE.NOT_SUPPORTED,
};

export interface ManagementParts {
  readonly initiatorPort: string;
  readonly device: DeviceServer;
  readonly tasks: TaskSet;
  /**
   * Counts the command with this CmdSN as received, if it was not.
   * @returns false if it was, or if no command may have that number yet
   */
  readonly skip: (cmdSn: number) => boolean;
}

/** @returns the response, once the function is complete */
export async function manage(
  request: Pick<TaskManagementRequest, 'function' | 'lun' | 'referencedTaskTag' | 'refCmdSn'>,
  parts: ManagementParts,
): Promise<TaskResponse> {
  const func = FUNCTIONS[request.function] ?? TASK_RESPONSE.NOT_SUPPORTED;
  if (typeof func === 'number') return func;
  if (func !== 'ABORT TASK') {
    return RESPONSES[await parts.device.manage(func, parts.initiatorPort, request.lun)];
  }
  const task = parts.tasks.find(request.referencedTaskTag);
  if (task === undefined) {
    // One that has not come never will: its CmdSN must not be waited for (RFC 7143, 11.6.1).
    const isSkipped = parts.skip(request.refCmdSn);
    return isSkipped ? TASK_RESPONSE.COMPLETE : TASK_RESPONSE.TASK_DOES_NOT_EXIST;
  }
  await parts.tasks.abort(task, new Error('ABORT TASK'));
  return TASK_RESPONSE.COMPLETE;
}
