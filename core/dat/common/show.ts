export { show } from '../../errors/index.js';
