// Every entry of the package resolves to declarations that compile under the strictest options.

import * as advanced from '@blade-ai/agent-sdk/advanced';
import manifest from '@blade-ai/agent-sdk/package.json' with { type: 'json' };
import * as root from '@blade-ai/agent-sdk';
import * as testing from '@blade-ai/agent-sdk/testing';

export const entries: readonly object[] = [root, advanced, testing];
export const version: string = manifest.version;
