// Measures how much of a provider's rate limit 200 runs use with createLimiter, and how many requests the provider rejects, compared
// with the same runs without a limiter. The provider is a real HTTP server that allows 600 requests per minute. Takes about three
// minutes.
// Usage: npm run bench -- limiter
import { createServer } from 'node:http'
import { createAgent, defineTool, openaiChat } from 'statewright'
import { createLimiter } from 'statewright/fleet'

const allowed = 600
const windowMs = 60_000
const runs = 200
/** Requests per run. */
const steps = 4

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: { type: 'object', properties: { n: { type: 'number' } } },
  readOnly: true,
  execute: () => 'seen',
})

/** A sliding window, the strictest way to count. */
async function startServer() {
  const times = []
  const log = { answered: 0, refused: 0, lastAt: 0 }
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const piece of request) text += piece
    const now = performance.now()
    while (times.length > 0 && times[0] <= now - windowMs) times.shift()
    if (times.length >= allowed) {
      log.refused += 1
      const seconds = Math.ceil((times[0] + windowMs - now) / 1000)
      response.writeHead(429, { 'content-type': 'application/json', 'retry-after': `${seconds}` })
      response.end(JSON.stringify({ error: { message: 'Slow down.' } }))
      return
    }
    times.push(now)
    const calls = JSON.parse(text).messages.filter(({ role }) => role === 'tool').length
    const message =
      calls === steps - 1
        ? { role: 'assistant', content: 'Done.' }
        : {
            role: 'assistant',
            content: null,
            tool_calls: [
              { id: `c${calls}`, type: 'function', function: { name: 'look', arguments: `{"n":${calls}}` } },
            ],
          }
    const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 }
    const finish = calls === steps - 1 ? 'stop' : 'tool_calls'
    setTimeout(() => {
      log.answered += 1
      log.lastAt = performance.now()
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(
        JSON.stringify({ model: 'm', choices: [{ index: 0, message, finish_reason: finish }], usage }),
      )
    }, 100)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, log, baseURL: `http://127.0.0.1:${server.address().port}/v1` }
}

/** Runs one process's share. Returns the number of completed runs. */
async function playRuns(baseURL, count, limiter) {
  const model = openaiChat({ model: 'm', baseURL, apiKey: 'none', ...(limiter && { limiter }) })
  const agent = createAgent({ model, tools: [look], stream: false, prices: null })
  const results = await Promise.all(Array.from({ length: count }, () => agent.run('Go.').result))
  return results.filter(({ state }) => state === 'COMPLETED').length
}

/** `play` starts the runs and resolves with the number of completed runs. Returns whether the goals are met. */
async function measure(name, count, play) {
  const { server, log, baseURL } = await startServer()
  const startedAt = performance.now()
  const completed = await play(baseURL)
  const minutes = (log.lastAt - startedAt) / 60_000
  const share = (value) => `${(100 * value).toFixed(1)} %`
  const rate = log.answered / (allowed * Math.max(1, minutes))
  const refused = log.refused / (log.refused + log.answered)
  console.log(
    `${name}: ${completed} of ${count} runs completed in ${(minutes * 60).toFixed(1)} s, ${log.answered} requests answered ` +
      `(${share(rate)} of the allowed rate), ${log.refused} refused (${share(refused)}).`,
  )
  server.closeAllConnections()
  server.close()
  return rate >= 0.95 && refused <= 0.01 && completed === count
}

const limits = { id: 'bench', requestsPerMinute: allowed }
const isMet = await measure('With a limiter', runs, (baseURL) =>
  playRuns(baseURL, runs, createLimiter(limits)),
)
await measure('Without a limiter', runs, (baseURL) => playRuns(baseURL, runs))
if (!isMet) process.exitCode = 1
