/** Public face of the tools-shell pack: it contributes a tool and offers nothing else. */
export { bashParameters } from './contract.ts'
