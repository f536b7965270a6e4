/** Management datagrams for applications: `ia.mad`. */
import type { MadModule } from '../../spi/index.js';
import type { AdapterServices } from '../common/adapter-state.js';
import { checkFields, checkInteger } from '../../errors/guards.js';
import { BOOLEAN, FUNCTION, integer, LIST, optional, showAs } from '../../spi/checks/index.js';
import { nextHandleId } from '../common/handle.js';
import { notSupported } from '../common/unsupported.js';
import { ManagementAgent } from './agent.js';
import type { ManagementRequest } from './datagram.js';

/** Options of `ia.mad.registerAgent`. */
export interface ManagementAgentOptions {
  /** 0x30 to 0x4F are for vendors, with an OUI; 0x09 to 0x0F without. */
  readonly managementClass: number;
  /** Default 1. */
  readonly classVersion?: number;
  /** Methods, 0 to 127, whose requests come to this agent; default none: it only sends requests. */
  readonly methods?: readonly number[];
  /** 24 bits; for classes 0x30 to 0x4F. */
  readonly oui?: number;
  /**
   * Data of any length in segments, acknowledged; for classes that support it (0x30 to 0x4F do).
   */
  readonly rmpp?: boolean;
  /** Takes requests in place of `agent.requests$`. Runs in the pump, or later if it is async. */
  readonly onRequest?: (request: ManagementRequest) => void | Promise<void>;
  /** Requests queued for a subscriber; default 64, further ones are dropped. */
  readonly queueLength?: number;
}

const DEFAULT_QUEUE_LENGTH = 64;
const MAX_QUEUE_LENGTH = 65_536;

/** The agents of one interface adapter. They end with it. */
export class IaMad {
  static {
    showAs(this, 'IaMad', ({ agents }) => ({ agents: agents.size }));
  }

  private readonly agents = new Set<ManagementAgent>();

  /** @internal */
  constructor(
    private readonly context: AdapterServices,
    private readonly module: () => MadModule | undefined,
    private readonly assertOpen: (operation: string) => void,
  ) {}

  /** @internal agents that are registered */
  get size(): number {
    return this.agents.size;
  }

  /**
   * Registers an agent for a class of management datagrams (openib-general, October 2004).
   * @throws DatError DAT_INVALID_PARAMETER (also when another agent has one of the methods),
   * DAT_MODEL_NOT_SUPPORTED (the provider has no MAD module)
   */
  registerAgent(options: ManagementAgentOptions): ManagementAgent {
    const operation = 'ia.mad.registerAgent';
    this.assertOpen(operation);
    checkAgentOptions(operation, options);
    const { managementClass, classVersion = 1, methods = [], oui, rmpp = false } = options;
    const { queueLength = DEFAULT_QUEUE_LENGTH, onRequest } = options;
    this.context.trace?.(operation, { managementClass, methods: methods.join(' '), rmpp });
    const agent = new ManagementAgent({
      id: nextHandleId(),
      context: this.context,
      module: this.resolve(operation),
      format: { managementClass, oui, rmpp },
      classVersion,
      methods: [...methods],
      onRequest,
      queueLength,
      onUnregister: (leaving) => this.agents.delete(leaving),
    });
    this.agents.add(agent);
    return agent;
  }

  /** @internal */
  async unregisterAll(): Promise<void> {
    await Promise.all([...this.agents].map((agent) => agent.unregister()));
  }

  private resolve(operation: string): MadModule {
    const module = this.module();
    if (module) return module;
    const { name } = this.context.device;
    throw notSupported(operation, `the provider of device ${name} has no MAD module`);
  }
}

/** Types only; the module checks ranges and conflicts. */
const AGENT_OPTIONS = {
  managementClass: integer(1, 255),
  classVersion: optional(integer(0, 255)),
  methods: optional(LIST),
  oui: optional(integer(1, 0xffffff)),
  rmpp: optional(BOOLEAN),
  onRequest: optional(FUNCTION),
  queueLength: optional(integer(1, MAX_QUEUE_LENGTH)),
};

function checkAgentOptions(operation: string, options: ManagementAgentOptions): void {
  checkFields(operation, options, AGENT_OPTIONS);
  const { methods = [] } = options;
  for (const method of methods) checkInteger(operation, 'a method', method, 0, 127);
}
