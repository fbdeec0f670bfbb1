import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// `npm run dev` beside `npm start`: the page from Vite, its requests to the server.
export default defineConfig({ plugins: [react()], server: { proxy: { '/api': 'http://127.0.0.1:3000' } } });
