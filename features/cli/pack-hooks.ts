/** For `node --import`: what a pack's own tests import of svc-code is the installation that runs them. */
import { register } from 'node:module'

register('./resolve-self.js', import.meta.url)
