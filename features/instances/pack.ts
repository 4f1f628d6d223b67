/** Registers this server among the running ones of its home (contract 1, What the service does, fact 2). */
import { definePack, KernelInfo } from '../../kernel/index.ts'
import { registerInstance } from './instances.ts'

export default definePack({
  name: 'instances',
  description: 'Registry of the servers that run on one home',
  area: 'Server',
  needs: { kernel: KernelInfo },
  setup(ctx, { kernel }) {
    const register = async () => {
      const address = kernel.address()
      if (!address) return
      const { host, port } = address
      const { server_id, version } = kernel
      ctx.own(await registerInstance(ctx.home, { server_id, host, port, started_at: kernel.started_at.getTime(), host_version: version }))
    }
    ctx.tap(ctx.hooks.started, register)
    return register() // a pack that is loaded later finds the server listening
  }
})
