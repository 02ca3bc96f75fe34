// Starts the studio on rehearsed sessions from the sources: node scripts/studio.mjs [PORT]. The page's code is from
// the last build.
import { importSource } from './stage.mjs'

process.on('SIGINT', () => process.exit(0))
await importSource('test/studio/look.ts')
