import type { AgentConfig } from '../../../machines/agent/config.js'
import type { CliIO } from '../command.js'
import type { OutputForm } from '../commands/common-options.js'
import { HumanRenderer } from './human.js'
import { eventLines, resultLine } from './json.js'
import { wantsColor } from './paint.js'
import type { Renderer } from './renderer.js'

export function rendererFor(
  output: OutputForm,
  limits: AgentConfig['limits'],
  { stdout, env }: Pick<CliIO, 'stdout' | 'env'>,
): Renderer {
  if (output === 'json') return resultLine
  if (output === 'events') return eventLines
  const color = wantsColor(stdout, env)
  return new HumanRenderer({ color, limits, ...(stdout.columns && { width: stdout.columns }) })
}
