import { jest } from '@jest/globals'
import { describeTenants } from '../examples/tenants.js'
import { url } from './place.js'

jest.setTimeout(60_000)

describeTenants(() => url)
