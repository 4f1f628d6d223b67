/** pino logging: one root, a child per pack, secrets redacted. */
import type { Logger as PinoLogger } from 'pino'

export type Logger = PinoLogger
