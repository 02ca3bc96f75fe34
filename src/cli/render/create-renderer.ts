import type { AgentConfig } from '../../../machines/agent/config.js'
import type { CliIO } from '../command.js'
import type { OutputForm } from '../commands/common-options.js'
import { HumanRenderer } from './human-renderer.js'
import { eventRenderer, resultRenderer } from './json-renderer.js'
import { wantsColor } from './paint.js'
import type { Renderer } from './renderer.js'

export function createRenderer(
  output: OutputForm,
  limits: AgentConfig['limits'],
  { stdout, env }: Pick<CliIO, 'stdout' | 'env'>,
): Renderer {
  if (output === 'json') return resultRenderer
  if (output === 'events') return eventRenderer
  const color = wantsColor(stdout, env)
  return new HumanRenderer({ color, limits, ...(stdout.columns && { width: stdout.columns }) })
}
