/** Each MAD that is sent is reported once. */
import type { MadAgent, MadModule, MadSendHandle } from '../modules/mad.js';
import { over, type Over } from './over.js';
import type { Report } from './breaches.js';
import type { CallDepth } from './call-depth.js';

/** What stands over the members of a MAD module. */
export function strictMad(mad: MadModule, depth: CallDepth, report: Report): Over<MadModule> {
  return {
    registerAgent: (options) => {
      const { managementClass, onReceive, onSend } = options;
      const waiting = new Set<MadSendHandle>();
      let unregistered = false;
      const agent = depth.call('registerAgent', () =>
        mad.registerAgent({
          ...options,
          onReceive: (received) => depth.handler('MAD receive', () => onReceive(received)),
          onSend: (result) =>
            depth.handler('MAD send result', () => {
              if (!waiting.delete(result.handle) || unregistered) {
                const seen = `agent of class ${managementClass}: a result of no send`;
                report('mad-send-result', unregistered ? `${seen}, after its end` : seen);
              }
              onSend(result);
            }),
        }),
      );
      return over<MadAgent>(agent, {
        send: (send) => {
          const handle = depth.call('send', () => agent.send(send));
          waiting.add(handle);
          return handle;
        },
        cancel: (handle) => depth.call('cancel', () => agent.cancel(handle)),
        modify: (handle, timeoutUs) => depth.call('modify', () => agent.modify(handle, timeoutUs)),
        unregister: async () => {
          await depth.call('unregister', () => agent.unregister());
          unregistered = true;
          if (waiting.size === 0) return;
          const seen = `agent of class ${managementClass} ended with ${waiting.size} sends`;
          report('mad-send-result', `${seen} that were never reported`);
        },
      });
    },
    close: () => depth.call('close', () => mad.close()),
  };
}
