import { describePacketPort } from 'dapl/testing';
import { fixture } from '../support/ports/memory.js';

describePacketPort('memory port', fixture);
