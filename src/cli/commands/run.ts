import type { AgentConfig } from '../../../machines/agent/config.js'
import type { LocalInspector } from '../../inspect/node.js'
import { type AgentOptions, createAgent } from '../../runtime/agent.js'
import { wantsColor } from '../render/paint.js'
import { HumanRenderer } from '../render/human.js'
import { eventLines, resultLine } from '../render/json.js'
import type { Renderer } from '../render/renderer.js'
import type { CliIO, Command } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { followRun } from '../follow-run.js'
import { loadConfig } from '../load-config.js'
import { loadTools } from '../load-tools.js'
import { choosePrompt } from '../choose-prompt.js'
import { openInspector } from '../open-inspector.js'
import { openStage } from '../stage.js'
import { type RunOptions, readRunOptions, runOptionSpecs } from './run-options.js'

export const runCommand: Command = {
  name: 'run',
  about: 'Runs an agent on a prompt and shows what it does.',
  positional: '[PROMPT]',
  options: runOptionSpecs,
  notes: [
    'PROMPT is read from stdin when it is piped, or given as -. OPENAI_API_KEY holds the key. Options go before the\n' +
      'configuration file, which goes before the environment. Without a key or base URL, the built-in rehearsal is played.',
    'Exit codes: 0 completed, 1 error, 2 bad usage or configuration, 3 stopped by a limit or guardrail,\n' +
      '4 waits for input, 130 cancelled.',
    'Examples:\n' +
      '  statewright run --rehearsal\n' +
      '  statewright run --tools ./tools.mjs --max-steps 10 "What changed last week?"\n' +
      '  git diff | statewright run --instructions "Review this diff." --json | jq -r .output',
  ],
  execute: async (args, io) => {
    const options = readRunOptions(args)
    const file = options.config === undefined ? {} : await loadConfig(options.config, io.cwd)
    const tools = options.tools === undefined ? undefined : await loadTools(options.tools, io.cwd)
    const stage = await openStage(options, file, io)
    let inspector: LocalInspector | undefined
    try {
      const prompt = await choosePrompt(options.prompt, stage.prompt, io)
      const { $schema: _schema, model: _model, ...written } = file
      // What was read from JSON has no keys that are undefined.
      const settings = written as Omit<AgentOptions, 'model'>
      const agent = createAgent({
        ...settings,
        ...(options.instructions !== undefined && { instructions: options.instructions }),
        ...(!options.stream && { stream: false }),
        ...(stage.prices && { prices: stage.prices }),
        limits: { ...file.limits, ...options.limits },
        model: stage.model,
        tools: tools ?? stage.tools,
      })
      if (options.inspect) inspector = await openInspector(io)
      const renderer = rendererFor(options.output, agent.config.limits, io)
      const notes = options.output === 'human' ? io.stdout : io.stderr
      if (stage.opening) notes.write(`${stage.opening}\n`)
      const code = await followRun({
        start: (signal) =>
          agent.run(prompt, {
            signal,
            ...(options.session !== undefined && { session: options.session }),
            ...(inspector && { inspect: inspector.inspect }),
          }),
        renderer,
        io,
        canAsk: options.output === 'human' && io.stdin.isTTY === true && io.stdout.isTTY === true,
      })
      if (stage.closing && options.output === 'human' && code === exitCodes.completed)
        io.stdout.write(`\n${stage.closing}\n`)
      return code
    } finally {
      await inspector?.close()
      await stage.close()
    }
  },
}

function rendererFor(
  output: RunOptions['output'],
  limits: AgentConfig['limits'],
  { stdout, env }: CliIO,
): Renderer {
  if (output === 'json') return resultLine
  if (output === 'events') return eventLines
  const color = wantsColor(stdout, env)
  return new HumanRenderer({ color, limits, ...(stdout.columns && { width: stdout.columns }) })
}
