// Runs the suite of the AI SDK's provider packages, for the development dependencies and for the newest versions. The newest
// versions need a newer Node and a separate folder. Without them, they are skipped; in CI the suite fails.
import { fileURLToPath } from 'node:url'
import { installPackages } from './install-packages.mjs'
import { runSuite } from './suite.mjs'

const folder = fileURLToPath(new URL('../test/ai-sdk/newest', import.meta.url))
const hasNewest = installPackages(folder, '@ai-sdk/anthropic')
if (!hasNewest) {
  const isCI = process.env.CI === 'true'
  const what = isCI ? 'failed' : 'skipped'
  console.log(`Tests of the newest AI SDK packages ${what}: npm ci in test/ai-sdk/newest did not succeed.`)
  if (isCI) process.exit(1)
}

runSuite(['--runInBand', 'test/ai-sdk', ...process.argv.slice(2)], {
  STATEWRIGHT_SUITE: 'ai-sdk',
  ...(hasNewest && { AI_SDK_NEWEST: 'installed' }),
})
