import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jest } from '@jest/globals'
import { describeTenants } from './tenants.js'

jest.setTimeout(60_000)

const folder = mkdtempSync(join(tmpdir(), 'statewright-tenants-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describeTenants(() => `file:${folder}`)
