/** Wires media: what prompts refer to, and ReadMediaFile. */
import { definePack } from '../../kernel/index.ts'
import { Agents } from '../agent/index.ts'
import { Config, ConfigSections } from '../config/index.ts'
import { Uploads } from '../files/index.ts'
import { Histories } from '../history/index.ts'
import { PromptMedia } from '../prompts/index.ts'
import { ToolSets } from '../tools/index.ts'
import { nodeFileOps } from '../tools-files/index.ts'
import { imageSection, limitsOf } from './contract.ts'
import { promptMedia } from './prompt-media.ts'
import { readMediaTools } from './read-media.ts'
import { Recoder } from './recode.ts'
import { ToolImages, toolImages } from './tool-images.ts'

export default definePack({
  name: 'media',
  description: 'Media in prompts: uploads, images that fit the model, and ReadMediaFile',
  area: 'Files',
  needs: { histories: Histories },
  optional: { agents: Agents, config: Config, uploads: Uploads },
  provides: [PromptMedia, ToolImages],
  setup(ctx, { histories, agents, config, uploads }) {
    const recoder = new Recoder()
    const limits = () => limitsOf(config()?.get(imageSection))
    ctx.contribute(ConfigSections, imageSection)
    const images = { recoder, edge: () => limits().max_edge_px, newId: ctx.newId }
    ctx.provide(PromptMedia, promptMedia({ histories, uploads, ...images }))
    ctx.provide(ToolImages, toolImages({ ...images, log: ctx.log }))
    const readMedia = readMediaTools({ ops: nodeFileOps, home: ctx.home, recoder, limits })
    ctx.contribute(ToolSets, {
      name: 'media',
      names: ['ReadMediaFile'],
      tools: agent => readMedia(agents()?.modelOf(agent)?.capabilities ?? [])
    })
  }
})
