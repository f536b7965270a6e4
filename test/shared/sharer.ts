/**
 * A process that asks for memory by a name and says what it finds: `sharer.js NAME BYTES`. It does
 * what each line of its input says, and answers each with a line.
 */
import { createInterface } from 'node:readline';
import { loadNativeAddon } from '../../providers/softroce/port/native-addon.js';

const [, , name = '', bytes = '0'] = process.argv;
let memory: Int32Array | undefined;

function answer(command: string): string | number {
  const [what, at = '0', value = '0'] = command.split(' ');
  switch (what) {
    case 'open':
      memory = new Int32Array(loadNativeAddon()!.shareMemory(name, Number(bytes)));
      return 'opened';
    case 'add':
      return Atomics.add(memory!, Number(at), Number(value));
    case 'load':
      return Atomics.load(memory!, Number(at));
    default:
      return process.pid;
  }
}

createInterface(process.stdin).on('line', (command) => {
  try {
    console.log(answer(command));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    console.log(`${code}: ${message}`);
  }
});
