import { sampledRows } from '../support/extent.js'
import { bothOf, follow, generatedPaths } from './paths.js'

// All of them: npm run suite -- chat. `.ci/run` takes two inputs, and `npm test` one.
const sample = sampledRows(['with result shields', 'interactive'])
const paths =
  process.env.STATEWRIGHT_SUITE === 'chat'
    ? generatedPaths()
    : generatedPaths(...sample).filter((_, i) => i % 6 === 0)

test.each(paths.map((path, i) => [`${i + 1}. with ${path.input}: ${path.name}`, path] as const))(
  'an AG-UI page follows, %s',
  async (_, path) => {
    const { page, context, rests } = await follow(path)
    const { shown, transcript } = bothOf(page, context)
    // A path may end during a run, before shields have checked it.
    if (rests) expect(shown).toEqual(transcript)
  },
)
