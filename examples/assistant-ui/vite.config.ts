import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// `npm run dev` serves the page, and server.py what is under /api.
export default defineConfig({
  plugins: [react()],
  server: { proxy: { "/api": "http://127.0.0.1:8000" } },
  build: { chunkSizeWarningLimit: 1500 },
});
