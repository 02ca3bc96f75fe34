/**
 * A coding agent for the terminal. It fixes an issue in a small project, in a separate folder.
 *
 *   npm run example -- coding-agent
 */
import { cp, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openaiChat, StatewrightError } from 'statewright'
import { createCodingAgent, openIssues } from './agent.mjs'
import { startModels } from './rehearsal.mjs'
import { openTerminal } from './terminal.mjs'

const command =
  process.env.npm_lifecycle_event === 'example'
    ? 'npm run example -- coding-agent'
    : 'node examples/coding-agent/main.mjs'
const help = `A coding agent for the terminal.

  ${command} [OPTIONS] [TASK]

TASK is the task for the agent. Default: Fix issue 12.

  --model NAME       an OpenAI model, with your OPENAI_API_KEY. Default: a script plays the model
  --resume FOLDER    continues after Ctrl-C or a crash. A TASK is added to the conversation
  --yes              approve every change
  --cost-limit USD   maximum cost of the session. Default: 0.50
  --window TOKENS    maximum tokens of a request. Default: 100000, or 2500 for the script
  --help             show this text

Ctrl-C parks the agent after its current step. A second Ctrl-C exits immediately. The session is stored in both cases.`

const session = 'work'

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      model: { type: 'string' },
      resume: { type: 'string' },
      yes: { type: 'boolean', default: false },
      'cost-limit': { type: 'string', default: '0.5' },
      window: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(help)
  const terminal = openTerminal(process)
  const folder = values.resume ?? (await createFolder())
  const task = positionals.join(' ') || (values.resume === undefined ? 'Fix issue 12.' : '')
  const issues = await openIssues(folder)
  const models = values.model === undefined ? await startModels() : null
  try {
    terminal.dim(`Folder: ${folder}`)
    terminal.dim(`Model:  ${values.model ?? 'a script, free of charge'}`)
    const agent = createCodingAgent({
      folder,
      issues,
      model: (role) =>
        openaiChat(models ? { model: `rehearsal/${role}`, baseURL: models.url } : { model: values.model }),
      // The price of a small model.
      prices: models ? { 'rehearsal/coder': price, 'rehearsal/reviewer': price } : {},
      costLimit: Number(values['cost-limit']),
      window: Number(values.window ?? (models ? 2_500 : 100_000)),
    })
    const result = await work({
      agent,
      task,
      isResumed: values.resume !== undefined,
      isYes: values.yes,
      terminal,
    })
    if (result.resumable) {
      const model = values.model === undefined ? '' : ` --model ${values.model}`
      terminal.print(`\nThe agent is parked. Continue with:\n  ${command} --resume ${folder}${model}`)
    }
    process.exitCode = result.resumable || result.state === 'COMPLETED' ? 0 : 1
  } finally {
    await Promise.all([issues.close(), models?.close()])
    // An open pipe would keep the process alive.
    process.stdin.destroy()
  }
}

const price = { inputPerMillion: 0.25, outputPerMillion: 2 }

async function createFolder() {
  const folder = await mkdtemp(path.join(tmpdir(), 'coding-agent-'))
  await cp(fileURLToPath(new URL('project', import.meta.url)), path.join(folder, 'project'), {
    recursive: true,
  })
  return folder
}

/** Runs or resumes the agent until the run has ended or is parked. Resolves to the result of the run. */
async function work({ agent, task, isResumed, isYes, terminal }) {
  const stop = new AbortController()
  const run = isResumed ? await continueSession(agent, task, terminal) : agent.run(task, { session })
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(130)
      stop.abort()
      if (atWork.includes(run.state)) run.pause()
    })
  }
  run.events$.subscribe({ next: terminal.showEvent, error: () => {} })
  let result = await run.result
  while (result.state === 'WAITING_FOR_INPUT' && !stop.signal.aborted) {
    for (const call of result.pending) {
      terminal.showCall(call)
      terminal.showUsage(result.usage)
      if (call.interrupted)
        terminal.print('    It was running when the process ended, and may have had its effect.')
      const ask = () => terminal.ask('  Approve? [y]es, [n]o, or write what to change: ', stop.signal)
      let answer = isYes ? 'y' : await ask()
      for (; answer === 'all'; answer = await ask()) terminal.showCall(call, true)
      if (answer === null) return result
      if (/^y(es)?$/i.test(answer)) run.approve(call)
      else run.reject(call, /^(no?)?$/i.test(answer) ? '' : answer)
    }
    result = await run.result
  }
  return result
}

const atWork = ['RUNNING', 'WAITING_FOR_TOOL']
const unfinished = [...atWork, 'WAITING_FOR_INPUT', 'PAUSED']

/** The session as its last process left it. A task steers an active run, or starts the next one. */
async function continueSession(agent, task, terminal) {
  const run = await agent.resume(session)
  if (!unfinished.includes(run.state)) {
    if (task !== '') return agent.run(task, { session })
    const { state, output } = await run.result
    terminal.print(`${output}\n\n${state}: pass another TASK.`)
  } else if (task !== '') run.steer(task)
  else if (run.state === 'PAUSED') run.resume()
  return run
}

main().catch((error) => {
  // Errors that the user can fix are printed in one sentence.
  console.error(
    error instanceof StatewrightError || error.code?.startsWith('ERR_PARSE_ARGS') ? error.message : error,
  )
  process.exitCode = 2
})
