/** For `node --import`: what a pack's own tests import of svc-code is the installation that runs them. */
import { hookModules } from './module-hooks.ts'

hookModules()
