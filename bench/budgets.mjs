// 200 runs in one process, and 200 in four processes, share one budget. Reports the overspend, the reservations above the possible
// cost, the reservations released because answers were shorter, and the unspent budget. The provider counts input tokens with a
// tokenizer and keeps its own total.
// Usage: npm run bench -- budgets [--write]
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { encode } from 'gpt-tokenizer'
import { createBudget } from '../dist/src/fleet/index.js'
import { createAgent, memoryStore } from '../dist/src/index.js'
import { fileStore } from '../dist/src/stores/file/index.js'
import { table, written } from './block.mjs'

const here = fileURLToPath(import.meta.url)
const prices = { m: { inputPerMillion: 1.25, outputPerMillion: 10 } }
const maxTokens = 1000
const limits = { usd: 1 }
const texts = [
  'Summarise what the customer wants, in one sentence, and say which department should answer it. '.repeat(
    12,
  ),
  JSON.stringify(
    Array.from({ length: 40 }, (_, n) => ({ order: 1000 + n, state: 'shipped', total: n * 7.5 })),
  ),
  'for (const [name, value] of Object.entries(totals)) if (value > limit) report(name, value - limit)\n'.repeat(
    12,
  ),
]

/** Concurrent runs. Each answer uses a share of its token limit, between `from` and 1. */
async function runCrowd(budget, runs, from) {
  const seen = { paid: 0, reserved: 0, worst: 0, requests: 0 }
  const tap = {
    ...budget,
    reserve: async (amount, options) => {
      const held = await budget.reserve(amount, options)
      seen.reserved += amount.usd
      return held
    },
  }
  const model = {
    provider: 'own',
    model: 'm',
    async request({ messages }) {
      const inputTokens =
        3 + messages.reduce((sum, { content }) => sum + 4 + encode(String(content)).length, 0)
      const outputTokens = Math.floor(maxTokens * (from + Math.random() * (1 - from)))
      seen.paid += (inputTokens * 1.25 + outputTokens * 10) / 1e6
      seen.worst += (inputTokens * 1.25 + maxTokens * 10) / 1e6
      seen.requests += 1
      await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 20))
      const usage = {
        inputTokens,
        outputTokens,
        totalTokens: inputTokens + outputTokens,
        cachedInputTokens: 0,
        reasoningTokens: 0,
      }
      return {
        text: 'Done.',
        reasoning: '',
        refusal: null,
        toolCalls: [],
        finishReason: 'stop',
        complete: true,
        usage,
        model: 'm',
      }
    },
  }
  const agent = createAgent({ model, prices, sampling: { maxTokens }, budgets: [tap] })
  const results = await Promise.all(
    Array.from({ length: runs }, (_, n) => agent.run(texts[n % texts.length]).result),
  )
  return { ...seen, refused: results.filter(({ reason }) => reason === 'shared_budget').length }
}

if (process.argv[2] === 'worker') {
  const [dir, from] = process.argv.slice(3)
  const store = fileStore({ dir })
  const outcome = await runCrowd(createBudget({ id: 'shared', ...limits, store }), 50, Number(from))
  store.close()
  process.stdout.write(JSON.stringify(outcome))
} else {
  const rows = []
  for (const [answers, from] of [
    ['the full cap', 1],
    ['between half the cap and the cap', 0.5],
  ]) {
    rows.push(toRow(`200 in one process, in memory; ${answers}`, await inOneProcess(from)))
    rows.push(toRow(`50 in each of 4 processes, in a file; ${answers}`, await inFourProcesses(from)))
  }
  console.log(table(rows))
  if (process.argv.includes('--write')) {
    const docs = fileURLToPath(new URL('../docs/fleet.md', import.meta.url))
    writeFileSync(docs, written(readFileSync(docs, 'utf8'), 'budgets', table(rows)))
  }
  const most = 10
  const isWide = (row) =>
    parseFloat(row['reserved above the worst case']) > most || parseFloat(row['unused budget']) > most
  if (rows.some((row) => row.overshoot !== '0' || isWide(row))) process.exitCode = 1
}

async function inOneProcess(from) {
  const store = memoryStore()
  const budget = createBudget({ id: 'shared', ...limits, store })
  return { all: [await runCrowd(budget, 200, from)], status: await budget.status() }
}

async function inFourProcesses(from) {
  const dir = mkdtempSync(join(tmpdir(), 'statewright-budgets-'))
  const all = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const child = spawn(process.execPath, ['--no-deprecation', here, 'worker', dir, String(from)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let output = ''
      child.stdout.on('data', (chunk) => (output += chunk))
      await new Promise((resolve) => child.once('close', resolve))
      return JSON.parse(output)
    }),
  )
  const store = fileStore({ dir })
  const status = await createBudget({ id: 'shared', ...limits, store }).status()
  store.close()
  rmSync(dir, { recursive: true, force: true })
  return { all, status }
}

function toRow(crowd, { all, status }) {
  const sum = (key) => all.reduce((total, one) => total + one[key], 0)
  const [paid, reserved, worst] = [sum('paid'), sum('reserved'), sum('worst')]
  const percent = (share) => `${(share * 100).toFixed(1)} %`
  const over = Math.max(0, paid - limits.usd)
  return {
    'runs; output': crowd,
    'answered, refused': `${sum('requests')}, ${sum('refused')}`,
    'paid (USD)': paid.toFixed(4),
    'spent in the store (USD)': status.spent.usd.toFixed(4),
    overshoot: over < 1e-9 ? '0' : over.toFixed(6),
    'unused budget': percent(1 - paid / limits.usd),
    'reserved above the worst case': percent(1 - worst / reserved),
    'reserved and released': percent(1 - paid / reserved),
  }
}
